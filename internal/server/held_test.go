package server

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"atoll/abd"
	"atoll/env"
)

// out is an answer that waits for a position. number tells it from others.
func out(number uint64, after env.Position) env.Out {
	return env.Out{To: env.Address{Conversation: number}, After: after}
}

// TestHeldAgainstItsTwin holds held against a list that is searched each
// time: an answer leaves when, and not before, its position is durable, once,
// and in the order in which the steps returned it.
func TestHeldAgainstItsTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHeld()
		var waiting []env.Out
		var appended, durable env.Position
		var number uint64
		leave := func(all []env.Out) (gone, stay []env.Out) {
			for _, o := range all {
				if o.After <= durable {
					gone = append(gone, o)
				} else {
					stay = append(stay, o)
				}
			}
			return gone, stay
		}
		t.Repeat(map[string]func(*rapid.T){
			"step": func(t *rapid.T) {
				appended += env.Position(rapid.IntRange(0, 3).Draw(t, "records"))
				var outs []env.Out
				for range rapid.IntRange(0, 4).Draw(t, "answers") {
					number++
					outs = append(outs, out(number, env.Position(rapid.Uint64Range(0, uint64(appended)).Draw(t, "after"))))
				}
				want, stay := leave(outs)
				waiting = append(waiting, stay...)
				if got := h.sift(outs, appended, 1); !slices.Equal(got, want) {
					t.Fatalf("sift let go %v, want %v", got, want)
				}
			},
			"commit": func(t *rapid.T) {
				durable = env.Position(rapid.Uint64Range(uint64(durable), uint64(appended)).Draw(t, "durable"))
				var want []env.Out
				want, waiting = leave(waiting)
				if got := h.release(durable, nil); !slices.Equal(got, want) {
					t.Fatalf("release let go %v, want %v", got, want)
				}
			},
			"": func(t *rapid.T) {
				if h.len() != len(waiting) || h.durable() != durable {
					t.Fatalf("%d wait, durable %d; want %d, %d", h.len(), h.durable(), len(waiting), durable)
				}
			},
		})
	})
}

// TestHeldBetweenTwoGoroutines has one step and one commit at the same time,
// as in the server. The disk is a number.
func TestHeldBetweenTwoGoroutines(t *testing.T) {
	const steps = 5000
	h := newHeld()
	var appended, durable atomic.Uint64
	var left [2][]uint64 // of answers that left, by the goroutine that let them
	check := func(by int, outs []env.Out) {
		for _, o := range outs {
			if uint64(o.After) > durable.Load() {
				t.Errorf("answer %d left after position %d, and durable is %d", o.To.Conversation, o.After, durable.Load())
			}
			left[by] = append(left[by], o.To.Conversation)
		}
	}
	var work sync.WaitGroup
	work.Go(func() {
		for h.await() {
			d := appended.Load()
			durable.Store(d)
			check(1, h.release(env.Position(d), nil))
		}
	})
	number := uint64(0)
	for range steps {
		if !h.admit() {
			t.Fatal("closed")
		}
		end := appended.Add(rand.Uint64N(3))
		outs := []env.Out{out(number, env.Position(end)), out(number+1, env.Position(rand.Uint64N(end+1)))}
		number += 2
		check(0, h.sift(outs, env.Position(end), 1))
	}
	for h.len() > 0 {
		runtime.Gosched() // the committer lets them go, or this test never ends
	}
	h.close()
	work.Wait()
	all := slices.Sorted(slices.Values(slices.Concat(left[0], left[1])))
	for i, n := range all {
		if n != uint64(i) {
			t.Fatalf("answer %d was lost, or came twice", i)
		}
	}
	if len(all) != int(number) {
		t.Errorf("%d answers left, want %d", len(all), number)
	}
}

func TestHeldIsBounded(t *testing.T) {
	many := make([]env.Out, maxHeld)
	for i := range many {
		many[i] = out(uint64(i), 1)
	}
	for _, test := range []struct {
		name  string
		outs  []env.Out
		bytes int
	}{
		{"answers", many, 0},
		{"bytes", nil, maxHeldBytes},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHeld()
				h.sift(slices.Clone(test.outs), 1, test.bytes)
				var ok bool
				admitted := finishes(func() { ok = h.admit() })
				if admitted() {
					t.Fatal("admitted more than the limit")
				}
				if !h.await() {
					t.Fatal("closed")
				}
				// What is being committed still counts.
				if another := finishes(func() { h.admit() }); admitted() || another() {
					t.Fatal("admitted more while a commit lasts")
				}
				if free := h.release(1, nil); len(free) != len(test.outs) {
					t.Errorf("released %d, want %d", len(free), len(test.outs))
				}
				if !admitted() || !ok {
					t.Error("there is room, and nothing is admitted")
				}
			})
		})
	}
}

// TestHeldForgetsBytesThatWroteNothing: puts that were refused, or that a
// larger tag made void, are followed by no commit.
func TestHeldForgetsBytesThatWroteNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHeld()
		h.sift(nil, 0, maxHeldBytes)
		h.sift(nil, 5, 1)
		h.await()
		h.release(5, nil)
		h.sift(nil, 5, maxHeldBytes)
		if admitted := finishes(func() { h.admit() }); !admitted() {
			t.Error("nothing is admitted any more, and nothing will be committed")
			h.close()
		}
	})
}

func TestHeldCommitterWaitsForWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHeld()
		var ok bool
		awaited := finishes(func() { ok = h.await() })
		h.sift([]env.Out{out(1, 0)}, 0, 0) // a step that wrote nothing
		if awaited() {
			t.Fatal("there is nothing to commit")
		}
		h.sift(nil, 1, 0)
		if !awaited() || !ok {
			t.Error("there is something to commit")
		}
	})
}

func TestHeldCloseEndsAllWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		idle, full := newHeld(), newHeld()
		full.sift(nil, 1, maxHeldBytes)
		results := make([]bool, 2)
		awaited := finishes(func() { results[0] = idle.await() })
		admitted := finishes(func() { results[1] = full.admit() })
		if awaited() || admitted() {
			t.Fatal("nothing to wait for")
		}
		idle.close()
		full.close()
		if !awaited() || !admitted() || results[0] || results[1] {
			t.Errorf("after close: %s", fmt.Sprint(awaited(), admitted(), results))
		}
	})
}

// TestHeldForgetsWhatAnEarlierCommitCovered: what is stepped after await, and
// before the commit takes what was cut, is made durable by that very commit.
// No other one comes to take its bytes off.
func TestHeldForgetsWhatAnEarlierCommitCovered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHeld()
		h.sift(nil, 1, 1)
		h.await()
		h.sift(nil, 2, maxHeldBytes)
		h.release(2, nil)
		if admitted := finishes(func() { h.admit() }); !admitted() {
			t.Error("nothing is admitted any more, and nothing will be committed")
			h.close()
		}
	})
}

// TestHeldBeginsWhereTheStoreIs: right after a restart, steps that write
// nothing are followed by no commit either.
func TestHeldBeginsWhereTheStoreIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHeld()
		h.begin(7)
		if got := h.sift([]env.Out{out(1, 7)}, 7, maxHeldBytes); len(got) != 1 {
			t.Errorf("an answer that shows what is durable is held")
		}
		if admitted := finishes(func() { h.admit() }); !admitted() {
			t.Error("nothing is admitted any more, and nothing will be committed")
			h.close()
		}
	})
}

func TestHeldCountsTheAnswersThatItHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHeld()
		show := out(1, 1)
		show.Message = &abd.GetAck{Record: abd.Record{Value: make([]byte, maxHeldBytes)}}
		h.sift([]env.Out{show}, 1, 0)
		admitted := finishes(func() { h.admit() })
		if admitted() {
			t.Fatal("admitted more than the limit")
		}
		h.release(1, nil)
		if !admitted() {
			t.Error("there is room, and nothing is admitted")
		}
	})
}
