package api

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/port/agent/agenttest"
)

// bench is a workspace with a file outside of it.
func bench(t *testing.T) (w *workshop, outside string) {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(top, "w")
	outside = filepath.Join(top, "outside.txt")
	for _, d := range []string{"src", "deep/a/b/c", ".git"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		outside: "outside\n", dir + "/src/a.go": "package a\n\nfunc A() {}\nfunc B() {}\n", dir + "/bin.dat": "a\x00b", dir + "/empty": "",
		dir + "/deep/a/b/c/d.txt": "A deep\n", dir + "/.git/config": "func A\n", dir + "/long.txt": strings.Repeat("x", 10_000) + "\nlast\n",
		dir + "/many.txt": numbered(5000), dir + "/huge.txt": strings.Repeat("0123456789abcde\n", editBytesMax/16+1), dir + "/bad.txt": "a\xffb\n",
	} {
		disktest.Put(t, name, text, 0o644)
	}
	for name, to := range map[string]string{"out": outside, "outdir": top, "in": "src/a.go", "indir": "src", "loop": "loop"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	w, err = openWorkshop(dir, []string{"MINE=yes"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.root.Close() })
	return w, outside
}

func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d\n", i+1)
	}
	return b.String()
}

func (w *workshop) call(name string, args map[string]any) (string, bool) {
	raw, _ := json.Marshal(args)
	return w.do(context.Background(), call{Name: name, Args: string(raw)}, &agenttest.Shown{})
}

func TestNoToolOfFilesLeadsOutOfTheWorkspace(t *testing.T) {
	w, outside := bench(t)
	for _, path := range []string{"../outside.txt", outside, "src/../../outside.txt", "/etc/passwd", "out", "outdir/outside.txt", "a/../../outside.txt", "\x00", strings.Repeat("a/", 3000)} {
		for tool, args := range map[string]map[string]any{
			"read_file": {"path": path}, "write_file": {"path": path, "content": "broken"}, "edit_file": {"path": path, "old": "outside", "new": "broken"},
			"list_files": {"path": path}, "search": {"path": path, "pattern": "outside"},
		} {
			result, ok := w.call(tool, args)
			if ok && strings.Contains(result, "outside") || ok && (tool == "write_file" || tool == "edit_file") {
				t.Errorf("%s %q: %s", tool, clip(path, 40), result)
			}
		}
	}
	if raw, _ := os.ReadFile(outside); string(raw) != "outside\n" {
		t.Errorf("outside is %q", raw)
	}
	if _, ok := w.call("write_file", map[string]any{"path": "outdir/new", "content": "x"}); ok {
		t.Error("a folder's link led out")
	}
}

func TestWhatIsReadIsBoundedAndSaysWhereItGoesOn(t *testing.T) {
	w, _ := bench(t)
	for _, row := range []struct {
		name   string
		args   map[string]any
		ok     bool
		has    string
		hasNot string
	}{
		{"a file", map[string]any{"path": "src/a.go"}, true, "func A() {}\n", "more"},
		{"by its absolute path", map[string]any{"path": w.dir + "/src/a.go"}, true, "func B", ""},
		{"by a link inside", map[string]any{"path": "in"}, true, "func A", ""},
		{"a part", map[string]any{"path": "many.txt", "offset": 4999, "limit": 1}, true, "line 4999\n(there is more: go on with offset 5000)", "line 5000"},
		{"its end", map[string]any{"path": "many.txt", "offset": 5000}, true, "line 5000\n", "more"},
		{"behind its end", map[string]any{"path": "many.txt", "offset": 6000}, false, "has 5000 lines", ""},
		{"many lines", map[string]any{"path": "many.txt"}, true, "offset 2001", "line 2001"},
		{"a long line", map[string]any{"path": "long.txt"}, true, "(8001 bytes more)\nlast", ""},
		{"a huge one", map[string]any{"path": "huge.txt"}, true, "there is more", ""},
		{"an empty one", map[string]any{"path": "empty"}, true, "empty", ""},
		{"bytes", map[string]any{"path": "bad.txt"}, true, "a\uFFFDb", ""},
		{"a binary one", map[string]any{"path": "bin.dat"}, false, "binary", ""},
		{"a folder", map[string]any{"path": "src"}, false, "list_files", ""},
		{"a pipe", map[string]any{"path": "pipe"}, false, "no regular file", ""},
		{"nothing", map[string]any{"path": "none"}, false, "does not exist", ""},
		{"a link to itself", map[string]any{"path": "loop"}, false, "loop", ""},
	} {
		result, ok := w.call("read_file", row.args)
		if ok != row.ok || !strings.Contains(result, row.has) || row.hasNot != "" && strings.Contains(result, row.hasNot) || len(result) > resultMax+100 || !utf8.ValidString(result) {
			t.Errorf("%s: %t, %d bytes: %s", row.name, ok, len(result), clip(result, 300))
		}
	}
}

func TestListsAndSearchesLeaveOutWhatIsNotTheirs(t *testing.T) {
	w, _ := bench(t)
	list, ok := w.call("list_files", map[string]any{})
	if !ok || !strings.Contains(list, "src/a.go\n") || !strings.Contains(list, "deep/a/\n") || strings.Contains(list, "deep/a/b") || strings.Contains(list, ".git") || !strings.Contains(list, "out (a link)") {
		t.Error(list)
	}
	if list, _ = w.call("list_files", map[string]any{"path": "deep", "depth": 9}); !strings.Contains(list, "deep/a/b/c/d.txt") {
		t.Error(list)
	}
	for _, row := range []struct{ pattern, path, glob, want string }{
		{"func A", "", "", "src/a.go:3: func A() {}\n"},
		{"A", "", "*.txt", "deep/a/b/c/d.txt:1: A deep\n"},
		{"A", "", "deep/**/*.txt", "deep/a/b/c/d.txt:1: A deep\n"},
		{"A", "src", "", "src/a.go:3: func A() {}\n"},
		{"^never$", "", "", "Nothing matches."},
	} {
		if got, ok := w.call("search", map[string]any{"pattern": row.pattern, "path": row.path, "glob": row.glob}); !ok || got != row.want {
			t.Errorf("%+v: %s", row, got)
		}
	}
	if got, _ := w.call("search", map[string]any{"pattern": "line"}); !strings.HasSuffix(got, "search for less)") || strings.Count(got, "\n") > matchesMax+1 {
		t.Error(clip(got, 300))
	}
	for _, args := range []map[string]any{{"pattern": "("}, {"pattern": ""}, {"pattern": strings.Repeat("x", 2000)}, {"pattern": "x", "glob": "["}, {"pattern": "x", "path": "none"}} {
		if got, ok := w.call("search", args); ok {
			t.Errorf("%v: %s", args, got)
		}
	}
}

func TestAFileIsWrittenInPlaceAndNeverThroughALink(t *testing.T) {
	w, _ := bench(t)
	read := func(name string) string { raw, _ := os.ReadFile(filepath.Join(w.dir, name)); return string(raw) }
	if err := os.Chmod(w.dir+"/src/a.go", 0o755); err != nil {
		t.Fatal(err)
	}
	if r, ok := w.call("write_file", map[string]any{"path": "new/deep/x", "content": "one"}); !ok || read("new/deep/x") != "one" {
		t.Error(r)
	}
	if r, ok := w.call("write_file", map[string]any{"path": "src/a.go", "content": "short"}); !ok || read("src/a.go") != "short" {
		t.Error(r)
	}
	if info, _ := os.Stat(w.dir + "/src/a.go"); info.Mode().Perm() != 0o755 {
		t.Errorf("its mode is %v", info.Mode())
	}
	for _, path := range []string{"in", "pipe", "src", ".", "bin.dat/x"} {
		if r, ok := w.call("write_file", map[string]any{"path": path, "content": "x"}); ok {
			t.Errorf("%s: %s", path, r)
		}
	}
	if to, err := os.Readlink(w.dir + "/in"); err != nil || to != "src/a.go" || read("src/a.go") != "short" {
		t.Errorf("the link is %q, %v", to, err)
	}
	if all, _ := filepath.Glob(w.dir + "/src/*"); len(all) != 1 {
		t.Errorf("beside it there is %q", all)
	}
}

func TestAnEditIsExactOrNothing(t *testing.T) {
	w, _ := bench(t)
	for _, row := range []struct {
		args map[string]any
		ok   bool
		has  string
	}{
		{map[string]any{"path": "src/a.go", "old": "func A", "new": "func C"}, true, "1 place"},
		{map[string]any{"path": "src/a.go", "old": "func ", "new": "x"}, false, "2 times"},
		{map[string]any{"path": "src/a.go", "old": "func ", "new": "fn ", "all": true}, true, "2 place"},
		{map[string]any{"path": "src/a.go", "old": "gone", "new": "x"}, false, "does not hold"},
		{map[string]any{"path": "src/a.go", "old": "", "new": "x"}, false, "empty"},
		{map[string]any{"path": "huge.txt", "old": "0", "new": "x"}, false, "too large"},
		{map[string]any{"path": "none", "old": "0", "new": "x"}, false, "does not exist"},
	} {
		if r, ok := w.call("edit_file", row.args); ok != row.ok || !strings.Contains(r, row.has) {
			t.Errorf("%v: %t %s", row.args, ok, r)
		}
	}
	if raw, _ := os.ReadFile(w.dir + "/src/a.go"); string(raw) != "package a\n\nfn C() {}\nfn B() {}\n" {
		t.Errorf("%s", raw)
	}
}

func TestACommandRunsWithALimitAndLeavesNothingBehind(t *testing.T) {
	w, _ := bench(t)
	for _, row := range []struct {
		command string
		ok      bool
		has     string
	}{
		{"echo out; echo err >&2; pwd; echo $MINE", true, "out\nerr\n" + w.dir + "\nyes"},
		{"exit 7", false, "exit status 7"},
		{"kill -9 $$", false, "signal"},
		{"true", true, "no output"},
		{"head -c 1000000 /dev/zero | tr '\\0' x; echo; echo END", true, "bytes left out"},
		{"cat", true, "no output"}, // its stdin is empty
		{" ", false, "the command is empty"},
		{"printf '\\377'", true, "\uFFFD"},
	} {
		r, ok := w.call("run", map[string]any{"command": row.command})
		if ok != row.ok || !strings.Contains(r, row.has) || len(r) > resultMax+100 {
			t.Errorf("%q: %t %s", row.command, ok, clip(r, 300))
		}
	}
	// A pipe ends for who reads it once no process of the command holds its other end.
	fd, err := syscall.Open(w.dir+"/pipe", syscall.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	if r, ok := w.call("run", map[string]any{"command": "mkfifo ready; (echo > ready; echo x; exec sleep 100000) > pipe & cat < ready; echo begun", "seconds": 600}); !ok || !strings.Contains(r, "begun") {
		t.Error(r)
	}
	if err := syscall.SetNonblock(fd, false); err != nil {
		t.Fatal(err)
	}
	for n := 1; n > 0 && err == nil; {
		n, err = syscall.Read(fd, make([]byte, 10))
	}
	for seconds := 1; ; seconds *= 2 { // on a machine that stands still it may end before it has begun
		r, ok := w.call("run", map[string]any{"command": "echo begun; exec sleep 100000", "seconds": seconds})
		begun := strings.Contains(r, "begun")
		if ok || !strings.Contains(r, fmt.Sprintf("ended after %ds", seconds)) || !begun && seconds > 8 {
			t.Errorf("%t %s", ok, r)
		}
		if begun || seconds > 8 {
			break
		}
	}
}

func TestPatienceEndsAfterItsTimeAndNotBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over := make(chan struct{})
		p := newPatience(10*time.Second, func() { close(over) })
		time.Sleep(9 * time.Second)
		p.Renew()
		time.Sleep(9 * time.Second)
		select {
		case <-over:
			t.Error("it ended early")
		default:
		}
		<-over
		p.Stop()
		p.Stop()
		newPatience(time.Second, func() { t.Error("it was stopped") }).Stop()
		time.Sleep(time.Minute)
	})
}

func TestWhatAModelWritesForArgumentsIsCheckedByName(t *testing.T) {
	read, run := all()[0], all()[5]
	for _, row := range []struct {
		tool tool
		args string
		want string // of the error; "" = it is taken
	}{
		{read, `{"path":"a"}`, ""}, {read, `{"path":"a","offset":3,"limit":null}`, ""}, {run, `{"command":"x","seconds":5}`, ""},
		{read, ``, `"path" is missing`}, {read, `null`, "no JSON object"}, {read, `{"path":"a"`, "no JSON object"}, {read, `[]`, "no JSON object"},
		{read, `{"path":1}`, "is no text"}, {read, `{"path":"a","offset":"3"}`, "no whole number"}, {read, `{"path":"a","offset":-1}`, "no whole number"},
		{read, `{"path":"a","offset":1e99}`, "no whole number"}, {read, `{"path":"a","more":1}`, `no argument "more"`},
		{read, `{"path":"` + strings.Repeat("x", argBytesMax+1) + `"}`, "is the limit"}, {read, strings.Repeat(" {", argsBytesMax), "is the limit"},
	} {
		_, err := row.tool.parse(row.args)
		if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
			t.Errorf("%s %s: %v", row.tool.name, clip(row.args, 60), err)
		}
	}
}

func FuzzArgumentsAreTakenWholeOrRefusedInOneLine(f *testing.F) {
	for _, seed := range []string{`{}`, `{"path":"a","offset":1}`, `{"command":"x","seconds":9}`, `{"path":"a","old":"b","new":"c","all":true}`, `[`, `{"path":{"path":{}}}`, "\xff", `{"pa\u0000th":"x"}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, args string) {
		for _, tool := range all() {
			v, err := tool.parse(args)
			if err != nil {
				if text := err.Error(); strings.ContainsAny(text, "\n\x00\x1b") || len(text) > 500 {
					t.Errorf("%s: %q", tool.name, text)
				}
				continue
			}
			for _, a := range tool.args {
				value, ok := v[a.name]
				if a.required && !ok {
					t.Errorf("%s was taken without %s: %q", tool.name, a.name, args)
				}
				n, isNumber := value.(int)
				if ok && (a.kind == "integer") != isNumber || n < 0 {
					t.Errorf("%s: %s is %v", tool.name, a.name, value)
				}
			}
			if object := (call{Args: args}).object(); !json.Valid(object) {
				t.Errorf("%q goes back as %q", args, object)
			}
		}
	})
}

func FuzzAnAnswerEndsInAReplyOrAnError(f *testing.F) {
	f.Add("data: {\"choices\":[{\"delta\":{\"content\":\"x\",\"tool_calls\":[{\"index\":-3,\"id\":\"a\"}]},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	f.Add("event: x\ndata: {\"type\":\"content_block_start\",\"index\":5,\"content_block\":{\"type\":\"tool_use\",\"id\":\"1\",\"name\":\"n\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n")
	f.Add("data: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"function_call\"}}\r\n\r\ndata: {\"type\":\"response.completed\",\"response\":{}}\n\n")
	f.Add("data: [DONE]\n\n")
	f.Add("data: {\"error\":\"x\"}\n\ndata:\n\n:\n")
	f.Fuzz(func(t *testing.T, text string) {
		for name, w := range wires {
			r, err := w.stream(events(strings.NewReader(text)), deaf)
			if err != nil && strings.ContainsAny(err.Error(), "\n\x1b\x00") {
				t.Errorf("%s: %q", name, err)
			}
			if len(r.calls) > callsMax || len(r.text) > textBytesMax {
				t.Errorf("%s: %d calls, %d bytes", name, len(r.calls), len(r.text))
			}
			_, _ = w.whole([]byte(text))
			_ = refused(400, []byte(text)).Error()
		}
	})
}
