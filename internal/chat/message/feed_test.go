package message_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"sallyport/internal/chat/message"
)

// TestAReaderThatIsTooSlowIsSentToTheRowsAndNoOtherMissesAThing holds that nobody who publishes waits, and that readers are apart.
func TestAReaderThatIsTooSlowIsSentToTheRowsAndNoOtherMissesAThing(t *testing.T) {
	const many = 5000
	var f message.Feed
	var slow, quick []*message.Subscription
	for range 8 { // they are told in no order
		slow, quick = append(slow, f.Subscribe("cht-1")), append(quick, f.Subscribe("cht-1"))
	}
	other := f.Subscribe("cht-2")
	heard := make([]int, len(quick))
	for n := range many {
		f.Publish(&message.Event{Chat: "cht-1", Kind: message.Said, Turn: n})
		for i, s := range quick {
			events, behind := f.Next(t.Context(), s)
			for _, e := range events {
				if behind || e.Kind != message.Said || e.Turn != heard[i] {
					t.Fatalf("a quick reader hears %+v as the %dth, behind: %v", e, heard[i], behind)
				}
				heard[i]++
			}
		}
	}
	f.Publish(&message.Event{Chat: "cht-2", Kind: message.TurnBegan})
	for _, s := range slow {
		events, behind := f.Next(t.Context(), s)
		if !behind || len(events) >= many || events[len(events)-1].Turn != many-1 {
			t.Errorf("a slow reader, behind: %v, hears %d events", behind, len(events))
		}
	}
	if events, behind := f.Next(t.Context(), other); behind || len(events) != 1 || events[0].Kind != message.TurnBegan {
		t.Errorf("who watches another chat hears %+v, behind: %v", events, behind)
	}
}

// TestRowsAreToldOfToWhoFollowsThem holds that each chat hears of its own rows, and that a reader who fell behind follows none until it
// has read them again.
func TestRowsAreToldOfToWhoFollowsThem(t *testing.T) {
	var f message.Feed
	follows, only := f.Subscribe("cht-1"), f.Subscribe("cht-1")
	f.Follow(follows)
	long := message.In{ID: "msg-1", Chat: "cht-1", Text: strings.Repeat("x", message.TextBytesMax)}
	f.Moved(long.At, message.Rows{Ins: []message.In{long, {ID: "msg-2", Chat: "cht-2"}}, Outs: []message.Out{{ID: "out-1", Chat: "cht-1"}, {ID: "out-2", Chat: "cht-2"}}})
	f.Publish(&message.Event{Chat: "cht-1", Kind: message.Said})
	events, behind := f.Next(t.Context(), follows)
	if rows := events[0].Rows; behind || len(events) != 2 || len(rows.Ins) != 1 || rows.Ins[0].ID != "msg-1" || len(rows.Outs) != 1 || rows.Outs[0].ID != "out-1" {
		t.Errorf("behind: %v, %d events, of them %+v", behind, len(events), rows)
	}
	if events, _ := f.Next(t.Context(), only); len(events) != 1 || events[0].Kind != message.Said {
		t.Errorf("who does not follow the rows hears %+v", events)
	}

	for range 20 { // few events that hold much
		f.Moved(long.At, message.Rows{Ins: []message.In{long}})
	}
	if events, behind := f.Next(t.Context(), follows); !behind || len(events) > 0 {
		t.Errorf("behind: %v, with %d events", behind, len(events))
	}
	f.Publish(&message.Event{Chat: "cht-1", Kind: message.TurnBegan})
	f.Follow(follows)
	f.Moved(long.At, message.Rows{Ins: []message.In{long}})
	if events, behind := f.Next(t.Context(), follows); behind || len(events) != 2 {
		t.Errorf("who follows again, behind: %v, hears %d events", behind, len(events))
	}
}

// TestWhatAnEventTellsIsWrittenOnceForAllWhoAreTold holds that what many who watch cost does not grow with what they are told.
func TestWhatAnEventTellsIsWrittenOnceForAllWhoAreTold(t *testing.T) {
	var f message.Feed
	var all []*message.Subscription
	for range 3 {
		all = append(all, f.Subscribe("cht-1"))
		f.Follow(all[len(all)-1])
	}
	f.Moved(time.Now(), message.Rows{Ins: []message.In{{ID: "msg-1", Chat: "cht-1"}, {ID: "msg-2", Chat: "cht-1"}}})
	made, failed := 0, errors.New("not now")
	for n, s := range all {
		events, _ := f.Next(t.Context(), s)
		for i, m := range events[0].Rows.Ins {
			raw, err := events[0].Once(i, func() ([]byte, error) {
				if made++; made == 1 {
					return nil, failed
				}
				return []byte(m.ID), nil
			})
			if n+i > 0 && (err != nil || string(raw) != string(m.ID)) || n+i == 0 && !errors.Is(err, failed) {
				t.Errorf("reader %d reads %q of the %d. thing: %v", n, raw, i, err)
			}
		}
	}
	if made != 3 {
		t.Errorf("two things were written %d times, of them one in vain", made)
	}
}
