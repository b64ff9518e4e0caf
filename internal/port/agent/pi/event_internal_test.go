package pi

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"sallyport/internal/base/disk/disktest"
)

// told are the types of the events in a text, and why it ended.
func told(in io.Reader) (types []string, err error) {
	r := newReader(in)
	for {
		e, err := r.next()
		if err != nil {
			return types, err
		}
		types = append(types, e.Type)
	}
}

// turnOfPi is what pi 0.74.2 wrote in one turn: words, two tools, an error that passes, and another try.
func turnOfPi(t testing.TB) []byte {
	t.Helper()
	raw, err := os.ReadFile("testdata/turn.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestEveryEventOfARealTurnIsRead(t *testing.T) {
	raw := turnOfPi(t)
	var want []string
	for line := range bytes.Lines(raw) {
		var e struct{ Type string }
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		want = append(want, e.Type)
	}
	got, err := told(bytes.NewReader(raw))
	if !errors.Is(err, io.EOF) || !slices.Equal(got, want) {
		t.Errorf("%v\n%q\n%q", err, got, want)
	}
	for _, must := range []string{"agent_start", "message_update", "tool_execution_start", "auto_retry_start", "agent_end", "response"} {
		if !slices.Contains(got, must) {
			t.Errorf("the turn has no %s", must)
		}
	}
}

func TestLinesAreReadInBounds(t *testing.T) {
	text := func(n int) string { return strings.Repeat("x", n) }
	for name, test := range map[string]struct {
		in    string
		types []string
		err   error
	}{
		"empty":                   {"", nil, io.EOF},
		"blank lines":             {"\n\n \n", nil, io.EOF},
		"no newline":              {`{"type":"a"}`, []string{"a"}, io.EOF},
		"another order of fields": {`{"id":"1","type":"response"}` + "\n", []string{"response"}, io.EOF},
		"a field of another kind": {`{"type":"new","id":17,"message":"text","args":[1]}` + "\n", []string{"new"}, io.EOF},
		"no events":               {"17\n[]\nnull\n\"x\"\nwords\n{\"type\":\n{\"type\":\"a\"}\n", []string{"a"}, io.EOF},
		"too much that is none":   {strings.Repeat("words\n", nonsenseMax+1), nil, errNonsense},
		"a separator in a text":   {"{\"type\":\"a\",\"title\":\"\u2028\"}\n{\"type\":\"b\"}\r\n", []string{"a", "b"}, io.EOF},
		"a long one that is kept": {`{"type":"message_end","message":{"x":"` + text(1<<20) + "\"}}\n", []string{"message_end"}, io.EOF},
		"a long one that is cut":  {`{"type":"agent_end","messages":["` + text(32<<20) + "\"]}\n" + `{"type":"a"}`, []string{"agent_end", "a"}, io.EOF},
		"a long update":           {`{"type":"message_update","message":"` + text(updateBytesMax) + "\"}\n" + `{"type":"a"}`, []string{"message_update", "a"}, io.EOF},
		"too long to be kept":     {`{"type":"message_end","message":"` + text(headBytesMax) + "\"}\n" + `{"type":"a"}`, []string{"message_end", "a"}, io.EOF},
		"long and of no type":     {"{\"x\":\"" + text(headBytesMax) + "\"}\n" + `{"type":"a"}`, []string{"a"}, io.EOF},
		"deep":                    {strings.Repeat(`{"x":`, 20_000) + "1" + strings.Repeat("}", 20_000) + "\n" + `{"type":"a"}`, []string{"a"}, io.EOF},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := told(strings.NewReader(test.in))
			if !slices.Equal(got, test.types) || !errors.Is(err, test.err) {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

// An update is as long as its message: what is new is read at its beginning, however it goes on.
func TestWhatIsNewIsReadFromTheBeginningOfALongUpdate(t *testing.T) {
	const head = `{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":3,"delta":"ne\\w`
	for rest, want := range map[string]update{
		`","partial":{"content":["` + strings.Repeat("x", 1<<20) + "\"]}}}\n": {"text_delta", 3, "ne\\w"},
		strings.Repeat("x", 1<<20) + "\"}}\n":                                 {}, // longer than any that is new
	} {
		e, err := newReader(strings.NewReader(head + rest)).next()
		if err != nil || e.Type != "message_update" || e.Update.Delta != want.Delta || want.Type != "" && e.Update != want {
			t.Errorf("%s %.80q, %v", e.Update.Type, e.Update.Delta, err)
		}
	}
}

// A line that never ends is read to its bound, and no further, in little memory.
func TestALineWithoutAnEndIsGivenUp(t *testing.T) {
	endless := iotest.DataErrReader(io.LimitReader(forever{}, 2*lineBytesMax))
	r := newReader(io.MultiReader(strings.NewReader(`{"type":"agent_end","messages":"`), endless))
	if _, err := r.next(); !errors.Is(err, errNonsense) {
		t.Errorf("%v", err)
	}
}

type forever struct{}

func (forever) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// What is read does not depend on how it comes, never fails but at its end, and each whole line that is an event is one.
func FuzzReader(f *testing.F) {
	for line := range bytes.Lines(turnOfPi(f)) {
		f.Add(line)
	}
	f.Add([]byte("{\"type\":\"a\"}\n17\n{\"type\":\"agent_end\"\n\xff\xfe{\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := told(bytes.NewReader(raw))
		if !errors.Is(err, io.EOF) && !errors.Is(err, errNonsense) {
			t.Fatal(err)
		}
		again, other := told(iotest.OneByteReader(bytes.NewReader(raw)))
		if !slices.Equal(got, again) || !errors.Is(other, err) {
			t.Errorf("%q, %v and by bytes %q, %v", got, err, again, other)
		}
		events := 0
		for line := range bytes.Lines(raw) {
			var any map[string]json.RawMessage
			if line = bytes.TrimSpace(line); len(line) > 0 && line[0] == '{' && json.Unmarshal(line, &any) == nil {
				events++
			}
		}
		if errors.Is(err, io.EOF) && len(got) < events { // an update is read to its middle: it may be more
			t.Errorf("%d of %d are read", len(got), events)
		}
	})
}

// A tool may answer more than is kept of a line: whose end it is stands at its beginning.
func TestTheEndOfAToolIsToldHoweverLongItsAnswer(t *testing.T) {
	line := `{"type":"tool_execution_end","toolCallId":"c1","toolName":"bash","result":"` + strings.Repeat("x", 1<<20) + `","isError":true}` + "\n"
	r := &reader{in: bufio.NewReaderSize(strings.NewReader(line), 64<<10)}
	if e, err := r.next(); err != nil || e.Type != "tool_execution_end" || e.ToolCallID != "c1" {
		t.Errorf("%q of %q, %v", e.Type, e.ToolCallID, err)
	}
}

func TestAFailureIsOneLineThatSaysWhatIsWrong(t *testing.T) {
	for said, want := range map[string]string{
		`401 {"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"},"request_id":"r"}`: "the model's endpoint refuses the key: 401 invalid x-api-key",
		"401 fake error": "the model's endpoint refuses the key: 401 fake error",
		`429 {"error":"the budget of this change is used up"}`: "a budget is used up: 429 the budget of this change is used up",
		"Connection error.":                    "the model's endpoint cannot be reached: Connection error.",
		"terminated":                           "the model's endpoint broke off its answer: terminated",
		"529 Overloaded":                       "the model's endpoint has failed: 529 Overloaded",
		`400 {"message":"prompt is too long"}`: "the conversation is too long for the model: 400 prompt is too long",
		"404 model: x not found":               "does not know this model",
		"what nobody\nknows\x1b[2J":            `the model failed: what nobody knows\x1b[2J`,
		"":                                     "the model failed and did not say why",
		"401 {":                                "refuses the key: 401 {",
	} {
		got := explain(said)
		if !strings.Contains(got, want) || strings.ContainsAny(got, "\n\x1b") {
			t.Errorf("%q: %q", said, got)
		}
	}
	if got := explain("500 " + strings.Repeat("é", 10_000)); len(got) > 1000 {
		t.Errorf("%d bytes", len(got))
	}
}

func TestOnlyWhatIsHalfWrittenIsCut(t *testing.T) {
	whole := strings.Repeat("x", 200<<10)
	for name, test := range map[string]struct {
		is, want string
		none     bool
	}{
		"whole":               {"a\nb\n", "a\nb\n", false},
		"half":                {"a\nb", "a\n", false},
		"a long half":         {"a\n" + whole, "a\n", false},
		"long lines":          {whole + "\n" + whole + "\nb", whole + "\n" + whole + "\n", false},
		"nothing whole":       {whole, "", true},
		"nothing":             {"", "", true},
		"nothing but its end": {"\n", "\n", false},
	} {
		path := t.TempDir() + "/s.jsonl"
		disktest.Put(t, path, test.is, 0o600)
		if err := mend(path); errors.Is(err, os.ErrNotExist) != test.none || err != nil && !test.none {
			t.Errorf("%s: %v", name, err)
		}
		if got, err := os.ReadFile(path); string(got) != test.want {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	dir := t.TempDir()
	for name, make := range map[string]func(path string) error{
		"folder": func(path string) error { return os.Mkdir(path, 0o700) },
		"pipe":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"link": func(path string) error {
			return errors.Join(os.WriteFile(dir+"/other", []byte("a\nb"), 0o600), os.Symlink(dir+"/other", path))
		},
	} {
		if err := make(dir + "/" + name); err != nil {
			t.Fatal(err)
		}
		if err := mend(dir + "/" + name); err == nil || errors.Is(err, os.ErrNotExist) {
			t.Errorf("a %s: %v", name, err)
		}
	}
	if got, err := os.ReadFile(dir + "/other"); string(got) != "a\nb" {
		t.Errorf("behind a link: %q, %v", got, err)
	}
}

func newReader(in io.Reader) *reader { return &reader{in: bufio.NewReaderSize(in, 64<<10)} }
