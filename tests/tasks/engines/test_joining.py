"""Engines that are asked while they are at work: who shares them, who reads, whose time it is."""

import threading
import time
from contextlib import closing

import pytest
from pool_engines import ScriptedEngine, ScriptedFactory, model
from waiting import PATIENCE_S

from winnow.tasks.engines import time_shares
from winnow.tasks.engines.errors import EngineDied
from winnow.tasks.engines.pool.pool import EnginePool
from winnow.tasks.engines.pool.request_scheduler import RequestGroup
from winnow.tasks.engines.protocol import Completion, GenerationFailure, Request, Sampling
from winnow.tasks.engines.time_shares import TimeShares
from winnow.tasks.engines.vllm.running_batch import RunningBatch
from winnow.tasks.processes import replies as replies_module
from winnow.tasks.processes.replies import Replies


def ask(*prompts):
    return [Request(prompt=each, sampling=Sampling(), seed=0) for each in prompts]


class Joining(ScriptedEngine):
    joins = True


class Factory(ScriptedFactory):
    engine = Joining


@pytest.fixture
def pool_of(tmp_path):
    opened = []

    def pool_of(scripts, factory=Factory, **settings):
        made = factory(scripts)
        opened.append(EnginePool(log_folder=tmp_path, factory=made, **settings))
        return opened[-1], made

    yield pool_of
    for pool in opened:
        pool.close()


def groups(*names):
    return [RequestGroup(model=model(name), requests=ask(f"{n}")) for n, name in enumerate(names)]


def test_an_engine_that_joins_is_asked_for_all_of_its_groups_at_once_and_others_group_after_group(pool_of):
    everybody = threading.Barrier(3, timeout=PATIENCE_S)
    pool, _ = pool_of({"a": [everybody.wait] * 3})
    with closing(pool.stream()) as stream:
        numbers = stream.add(groups("a", "a", "a"))
        assert {stream.next_answers()[0] for _ in numbers} == set(numbers)
    alone, _ = pool_of({}, ScriptedFactory)
    with closing(alone.stream()) as stream:
        numbers = stream.add(groups("a", "a", "a"))
        assert [stream.next_answers()[0] for _ in numbers] == numbers


def test_groups_may_be_added_while_others_are_made_and_each_has_its_own_answers(pool_of):
    later = threading.Event()
    pool, _ = pool_of({"a": [lambda: later.wait(PATIENCE_S)]})
    with closing(pool.stream()) as stream:
        (first,) = stream.add(groups("a"))
        stream.begin()
        (second,) = stream.add([RequestGroup(model=model("a"), requests=ask("x", "y"))])
        number, answers = stream.next_answers()
        assert (number, [each.text for each in answers]) == (second, ["a:x", "a:y"])
        later.set()
        assert stream.next_answers()[0] == first


def test_an_engine_that_ends_for_several_counts_as_one_end_and_is_closed_once(pool_of):
    everybody = threading.Barrier(3, timeout=PATIENCE_S)

    def die():
        everybody.wait()
        raise EngineDied("a", "it was its time")

    pool, factory = pool_of({"a": [die] * 3}, max_restarts=1)
    with closing(pool.stream()) as stream:
        stream.add(groups("a", "a", "a"))
        with pytest.raises(EngineDied):
            stream.next_answers()
        assert list(stream.finish_begun()) == []
        assert factory.diary == ["start a", "close a"]
        stream.add(groups("a"))
        _, (answer,) = stream.next_answers()
        assert isinstance(answer, Completion)


def test_whatever_those_find_who_shared_an_engine_that_died_its_death_is_the_cause(pool_of):
    both, is_closed = threading.Barrier(2, timeout=PATIENCE_S), threading.Event()

    def die():
        both.wait()
        raise EngineDied("a", "it was its time")

    def notice():
        both.wait()
        assert is_closed.wait(PATIENCE_S)
        raise RuntimeError("this portal is not running")

    class Closed(Joining):
        def close(self):
            super().close()
            is_closed.set()
            time.sleep(0.05)  # the other one is told before

    class ClosedFactory(Factory):
        engine = Closed

    pool, _ = pool_of({"a": [die, notice]}, ClosedFactory)
    with closing(pool.stream()) as stream:
        stream.add(groups("a", "a"))
        with pytest.raises(EngineDied, match="it was its time"):
            stream.next_answers()


def test_what_was_begun_is_finished_and_the_rest_is_forgotten(pool_of):
    go_on = threading.Event()
    pool, _ = pool_of({"a": [lambda: go_on.wait(PATIENCE_S)]}, ScriptedFactory)
    with closing(pool.stream()) as stream:
        first, _ = stream.add(groups("a", "a"))
        stream.begin()
        go_on.set()
        assert [number for number, _ in stream.finish_begun()] == [first]
        (third,) = stream.add(groups("a"))
        assert stream.next_answers()[0] == third


class Mailbox:
    """Messages as they come; one at a time is taken."""

    def __init__(self):
        self._messages, self._come = [], threading.Condition()

    def put(self, message):
        with self._come:
            self._messages.append(message)
            self._come.notify_all()

    def receive(self, timeout, most_bytes):
        with self._come:
            if not self._come.wait_for(lambda: self._messages, timeout):
                raise TimeoutError
            message = self._messages.pop(0)
        if isinstance(message, Exception):
            raise message
        return message


def waiting(replies, *numbers, timeout=PATIENCE_S):
    """What each of several threads gets, once all have it."""
    found = {}

    def wait(number):
        try:
            found[number] = replies.wait(number, timeout)
        except Exception as error:
            found[number] = error

    threads = [threading.Thread(target=wait, args=(number,)) for number in numbers]
    for thread in threads:
        thread.start()
    return threads, found


def test_each_thread_gets_its_own_reply_in_whichever_order_they_come():
    mailbox = Mailbox()
    replies = Replies(mailbox.receive)
    numbers = [replies.expect(100) for _ in range(4)]
    threads, found = waiting(replies, *numbers)
    for number in reversed(numbers):
        mailbox.put({"number": number, "answers": [number]})
    for thread in threads:
        thread.join(PATIENCE_S)
    assert found == {number: {"answers": [number]} for number in numbers}


@pytest.mark.parametrize(
    "wrong", [EOFError("gone"), {"answers": []}, {"number": 9}, {"number": [1]}], ids=str
)
def test_the_end_is_the_end_for_all_who_wait_and_for_those_who_come_later(wrong):
    mailbox = Mailbox()
    replies = Replies(mailbox.receive)
    numbers = [replies.expect(100) for _ in range(3)]
    threads, found = waiting(replies, *numbers[:2])
    mailbox.put(wrong)
    for thread in threads:
        thread.join(PATIENCE_S)
    kind = EOFError if isinstance(wrong, EOFError) else ValueError
    assert [type(found[number]) for number in numbers[:2]] == [kind, kind]
    with pytest.raises(kind):
        replies.wait(numbers[2], 0.0)


def test_whoever_is_late_does_not_keep_others_from_their_replies():
    mailbox = Mailbox()
    replies = Replies(mailbox.receive)
    early, late = replies.expect(100), replies.expect(100)
    with pytest.raises(TimeoutError):
        replies.wait(early, 0.0)
    mailbox.put({"number": late, "answers": []})
    assert replies.wait(late, PATIENCE_S) == {"answers": []}


def test_the_shares_of_an_engines_time_add_up_to_it(monkeypatch):
    moments = iter([0.0, 1.0, 3.0, 5.0, 9.0, 10.0])
    monkeypatch.setattr(time_shares.time, "perf_counter", lambda: next(moments))
    shares = TimeShares()
    two = shares.begin(2)  # alone for 1 s, then beside another for 2
    one = shares.begin()
    of_two = shares.end(two, 2)
    of_one = shares.end(one)  # alone for 2 more
    assert of_two == pytest.approx(1 / 2 + 2 / 3)
    assert 2 * of_two + of_one == pytest.approx(5.0)
    again = shares.begin()  # nobody was at work from 5 to 9
    assert shares.end(again) == pytest.approx(1.0)


class Output:
    def __init__(self, request_id):
        self.request_id, self.finished = request_id, True


def test_a_group_is_complete_with_its_last_text_and_one_that_is_refused_fails_alone():
    taken, steps = [], []
    refused = GenerationFailure(reason="refused", detail="too long")

    def take_in(id_, ids, params):
        if ids == [9]:
            return refused
        taken.append(id_)
        return None

    running = RunningBatch(
        lambda: steps.pop(0),
        places=256,
        take_in=take_in,
        read=lambda output, seconds, latency: (output.request_id, latency >= seconds >= 0.0),
    )
    assert not running
    running.add(4, [[1], [9], [2]], [{}, {}, {}])
    running.add(5, [[3]], [{}])
    running.add(6, [refused], [{}])
    first, second, third = taken
    steps[:] = [[], [Output(third), Output(first)], [Output(second)]]
    assert running.step() == [(6, [refused])]
    assert running.step() == [(5, [(third, True)])]
    assert running.step() == [(4, [(first, True), refused, (second, True)])]
    assert not running
    assert steps == []


def test_what_waits_for_a_place_in_the_batch_takes_no_time_of_the_engine(monkeypatch):
    """Four candidates with equal work have equal shares, whoever is asked first."""
    now, taken = [0.0], []
    monkeypatch.setattr(time_shares.time, "perf_counter", lambda: now[0])

    def step():
        now[0] += 1.0
        return [Output(id_) for id_ in (taken.pop(0), taken.pop(0))]

    running = RunningBatch(
        step,
        places=2,
        take_in=lambda id_, ids, params: taken.append(id_),
        read=lambda output, seconds, latency: (seconds, latency),
    )
    for number in range(4):
        running.add(number, [[1]] * 6, [{}] * 6)
    answered = {}
    while running:
        answered.update(running.step())
    assert [set(answered[number]) for number in range(4)] == [{(0.5, 1.0)}] * 4


def test_time_counts_from_the_last_reply_to_anybody(monkeypatch):
    now, mailbox = [0.0], Mailbox()

    def receive(timeout, most_bytes):
        now[0] += 6.0
        if timeout <= 6.0:
            raise TimeoutError
        return mailbox.receive(0.0, most_bytes)

    monkeypatch.setattr(replies_module.time, "monotonic", lambda: now[0])
    replies = Replies(receive)
    first, second, third = (replies.expect(100) for _ in range(3))
    mailbox.put({"number": first, "answers": []})
    mailbox.put({"number": second, "answers": []})
    assert replies.wait(second, 10.0) == {"answers": []}
    assert now == [12.0]
    now[0] = 30.0
    with pytest.raises(TimeoutError):
        replies.wait(third, 5.0)


def test_an_engine_is_asked_all_groups_of_a_round_at_once_unless_it_is_asked_whole_calls(pool_of):
    everybody = threading.Barrier(3, timeout=PATIENCE_S)
    pool, _ = pool_of({"a": [everybody.wait] * 3})
    with closing(pool.answers(groups("a", "a", "a"))) as answers:
        assert {number for number, _ in answers} == {0, 1, 2}
    at_work = threading.Lock()

    def be_alone():
        assert at_work.acquire(blocking=False)
        time.sleep(0.01)
        at_work.release()

    pool, _ = pool_of({"a": [be_alone] * 3}, streaming=False)
    with closing(pool.answers(groups("a", "a", "a"))) as answers:
        assert [number for number, _ in answers] == [0, 1, 2]
