from winnow.tasks.rounds.generation_batch import ReplicateCounter, meetings_of


def test_a_benchmark_pair_is_one_meeting_and_a_duel_two():
    assert meetings_of([2, 0], [5, 6]) == [(2, 5), (0, 6)]
    assert meetings_of([[2, 0], [1, 2]], [5, 6]) == [(2, 5), (0, 5), (1, 6), (2, 6)]


def test_a_meeting_is_numbered_by_those_before_it_in_finished_rounds_and_in_its_own():
    meetings = ReplicateCounter()
    first = meetings_of([[0, 1], [0, 2]], [7, 7])
    assert meetings.replicates(first) == [0, 0, 1, 0]
    assert meetings.replicates(first) == [0, 0, 1, 0]  # a round that is generated again is the same
    meetings.add(first)
    assert meetings.replicates(meetings_of([[0, 2], [1, 0]], [7, 8])) == [2, 1, 0, 0]
