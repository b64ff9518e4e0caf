package api

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sallyport/internal/base/rapidtest"
)

// spoken draws a conversation as it is between two questions: it ends with a person's words or a tool's result.
func spoken(t *rapid.T) []entry {
	text := func(name string) string {
		return strings.Repeat(rapid.StringN(0, 20, -1).Draw(t, name), rapid.IntRange(1, 400).Draw(t, name+" times"))
	}
	said := []entry{{Role: roleUser, Text: "the request " + text("request")}}
	for i := range rapid.IntRange(0, 30).Draw(t, "exchanges") {
		a := entry{Role: roleAssistant, Text: text("words")}
		if rapid.Bool().Draw(t, "thinks") {
			a.Opaque = []json.RawMessage{json.RawMessage(`{"type":"reasoning"}`)}
		}
		for n := range rapid.IntRange(0, 3).Draw(t, "calls") {
			args, _ := json.Marshal(map[string]string{"path": "a", "content": text("content")})
			a.Calls = append(a.Calls, call{ID: fmt.Sprintf("c%d-%d", i, n), Name: "write_file", Args: string(args)})
		}
		said = append(said, a)
		for _, c := range a.Calls {
			said = append(said, entry{Role: roleTool, ID: c.ID, Text: text("result")})
		}
		if len(a.Calls) == 0 {
			said = append(said, entry{Role: roleUser, Text: text("more")})
		}
	}
	return said
}

func TestAConversationFitsItsRoomAndStaysWhole(t *testing.T) {
	rapidtest.Check(t, func(t *rapid.T) {
		said := spoken(t)
		room := rapid.IntRange(contextBytesMin, 200<<10).Draw(t, "room")
		before := sizeOf(said)
		first := said[0].Text
		got := fit(said, room)
		if before <= room && !reflect.DeepEqual(got, said) {
			t.Fatal("what fitted was changed")
		}
		if size := sizeOf(got); size > room {
			t.Fatalf("%d bytes of %d in a room for %d, %d entries", size, before, room, len(got))
		}
		if again := mend(got); !reflect.DeepEqual(again, got) {
			t.Fatalf("a call lost its result, or a result its call:\n%+v\n%+v", got, again)
		}
		if got[0].Role != roleUser || !strings.HasPrefix(got[0].Text, first[:12]) {
			t.Fatalf("the request is %.40q", got[0].Text)
		}
		for _, e := range got {
			for _, c := range e.Calls {
				if !json.Valid([]byte(c.Args)) {
					t.Fatalf("arguments are %q", c.Args)
				}
			}
		}
		for _, w := range wires {
			raw, err := json.Marshal(w.body(question{model: "m", system: "s", tools: all(), said: got}))
			if err != nil || len(raw) == 0 {
				t.Fatal(err)
			}
		}
	})
}

func TestOldResultsGoFirst(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	said := []entry{{Role: roleUser, Text: long}}
	for i := range 10 {
		id := fmt.Sprint(i)
		said = append(said, entry{Role: roleAssistant, Text: "I look", Calls: []call{{ID: id, Name: "run", Args: `{}`}}}, entry{Role: roleTool, ID: id, Text: long})
	}
	got := fit(said, 80_000)
	if got[0].Text != long || len(got) != len(said) {
		t.Fatalf("%d entries, the request has %d bytes", len(got), len(got[0].Text))
	}
	if !strings.Contains(got[2].Text, "left out here") || got[len(got)-1].Text != long {
		t.Errorf("the oldest result has %d bytes, the newest %d", len(got[2].Text), len(got[len(got)-1].Text))
	}
}

func TestEveryCallHasExactlyOneResult(t *testing.T) {
	rapidtest.Check(t, func(t *rapid.T) {
		var said []entry
		ids := rapid.SampledFrom([]string{"a", "b", "c"})
		for range rapid.IntRange(0, 12).Draw(t, "entries") {
			switch rapid.IntRange(0, 2).Draw(t, "kind") {
			case 0:
				said = append(said, entry{Role: roleUser, Text: "x"})
			case 1:
				said = append(said, entry{Role: roleTool, ID: ids.Draw(t, "id")})
			default:
				e := entry{Role: roleAssistant}
				for _, id := range rapid.SliceOfNDistinct(ids, 0, 3, rapid.ID[string]).Draw(t, "calls") {
					e.Calls = append(e.Calls, call{ID: id})
				}
				said = append(said, e)
			}
		}
		open := map[string]bool{}
		for _, e := range mend(said) {
			if e.Role == roleTool {
				if !open[e.ID] {
					t.Fatalf("a result of no call: %+v", e)
				}
				delete(open, e.ID)
				continue
			}
			if len(open) > 0 {
				t.Fatalf("calls without results: %v", open)
			}
			for _, c := range e.Calls {
				open[c.ID] = true
			}
		}
		if len(open) > 0 {
			t.Fatalf("calls without results at the end: %v", open)
		}
	})
}
