from winnow.tasks.campaign.replay import ReplicateCounter, arms_and_examples


def test_a_benchmark_pair_is_asked_once_and_a_duel_twice():
    assert arms_and_examples([2, 0], [5, 6]) == [(2, 5), (0, 6)]
    assert arms_and_examples([[2, 0], [1, 2]], [5, 6]) == [(2, 5), (0, 5), (1, 6), (2, 6)]


def test_a_text_is_numbered_by_those_before_it_in_finished_rounds_and_in_its_own():
    counter = ReplicateCounter()
    first = arms_and_examples([[0, 1], [0, 2]], [7, 7])
    assert counter.replicates(first) == [0, 0, 1, 0]
    assert counter.replicates(first) == [0, 0, 1, 0]  # a round that is generated again is the same
    counter.add(first)
    assert counter.replicates(arms_and_examples([[0, 2], [1, 0]], [7, 8])) == [2, 1, 0, 0]
