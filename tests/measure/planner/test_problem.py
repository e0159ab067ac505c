from tests.bench.planner.examples import problem

from cnnlab.network import LENET5


def test_a_problem_knows_its_parameters_and_the_largest_share():
    assert problem("lenet5").n == LENET5.parameters().flat.size
    assert [problem(n_ranks=3, batch=batch).share for batch in (9, 10, 0)] == [3, 4, 0]
