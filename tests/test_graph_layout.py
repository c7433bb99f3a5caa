"""The layout of graphs: no boxes overlap, every box is right of its inputs, trees do not cross."""

from hypothesis import given
from hypothesis import strategies as st

from tinygrad_tf.graph_layout import layers, place

GRAPHS = st.lists(st.lists(st.integers(0, 100), max_size=4), min_size=1, max_size=25).map(
    lambda users: [[], *users]
)


def inputs_of(users):
    """A graph in which every box but 0 has at least one user with a smaller number."""
    inputs = [[] for _ in users]
    for box in range(1, len(users)):
        for user in [box - 1 if not users[box] else users[box][0], *users[box][1:]]:
            inputs[user % box].append(box)
    return inputs


@given(GRAPHS, st.data())
def test_boxes_stand_right_of_their_inputs_and_apart(users, data):
    inputs = inputs_of(users)
    depth = layers(inputs)
    sides = st.tuples(st.floats(20, 200), st.floats(20, 80))
    sizes = data.draw(st.lists(sides, min_size=len(inputs), max_size=len(inputs)))
    placed = place(inputs, sizes)
    corners = [
        (x - w / 2, y - h / 2, x + w / 2, y + h / 2)
        for (x, y), (w, h) in zip(placed.centres, sizes, strict=True)
    ]
    for i, (left, top, right, bottom) in enumerate(corners):
        assert left >= 0 and top >= 0 and right <= placed.width and bottom <= placed.height
        for other in corners[:i]:
            apart = right < other[0] or other[2] < left or bottom < other[1] or other[3] < top
            assert apart
        for parent in inputs[i]:
            assert depth[parent] > depth[i] and corners[parent][2] < left
            path = placed.paths[parent, i]
            assert path[0][0] == corners[parent][2] and path[-1][0] == left
            assert len(path) == 1 + depth[parent] - depth[i]
            # Between its ends an edge passes through no box.
            for x, y in path[1:-1]:
                assert not any(a < x < c and b < y < d for a, b, c, d in corners)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=20))
def test_a_tree_has_no_crossings(arity):
    inputs, following = [[]], 1
    for box, n in enumerate(arity):
        if box < len(inputs):
            inputs[box] = list(range(following, following + n))
            inputs += [[] for _ in range(n)]
            following += n
    placed = place(inputs, [(50.0, 20.0)] * len(inputs))
    ends = [
        (placed.centres[parent][1], placed.centres[box][1], placed.centres[box][0])
        for box, parents in enumerate(inputs)
        for parent in parents
    ]
    for a, b, x in ends:
        for c, d, other in ends:
            if x == other and b < d:
                assert a < c
