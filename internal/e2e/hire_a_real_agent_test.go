package e2e_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/agent/agenttest/modeltest"
	"sallyport/internal/port/sandbox"
)

// real is an agent that people have, with a model that does what a script says.
type real struct {
	name  string
	model string // by a name under which it offers its model a tool for commands
	wire  agent.Wire
	base  string // below the model's URL
	// remembers says that it goes on with its own session after a kill.
	remembers bool
}

// stage is a world with one such agent in it.
type stage struct {
	*world
	real
	where  agent.Endpoint
	server *modeltest.Server
	port   string // of the model, on the host
	path   string
	key    string
}

// Nobody but the host may hold it; a script that looks for it has it in two pieces.
var keyBegin, keyEnd = "sk-test-0123456789", "-the-key-of-ann"

// A real agent in a real sandbox is a test for each: they run beside each other.

func TestTheRealCodexLivesInASandbox(t *testing.T) {
	live(t, real{name: "codex", model: "gpt-5.5", wire: agent.Responses, base: "/v1", remembers: true})
}

func TestTheRealClaudeLivesInASandbox(t *testing.T) {
	live(t, real{name: "claude", model: "claude-opus-4-5", wire: agent.Messages, remembers: true})
}

func TestTheRealCodexOverACPLivesInASandbox(t *testing.T) {
	live(t, real{name: "codex-acp", model: "gpt-5.5", wire: agent.Responses, base: "/v1", remembers: true})
}

func TestTheRealGeminiLivesInASandbox(t *testing.T) {
	live(t, real{name: "gemini", model: "test-model", wire: agent.Gemini})
}

func TestTheRealPiLivesInASandbox(t *testing.T) {
	live(t, real{name: "pi", model: "test-model", wire: agent.Messages, remembers: true})
}

func TestTheRealOpencodeLivesInASandbox(t *testing.T) {
	live(t, real{name: "opencode", model: "test-model", wire: agent.Messages, remembers: true})
}

func TestTheRealQwenLivesInASandbox(t *testing.T) {
	live(t, real{name: "qwen", model: "test-model", wire: agent.Chat, base: "/v1", remembers: true})
}

// TestTheAgentOfOursLivesInASandbox is the same without any program but ours.
func TestTheAgentOfOursLivesInASandbox(t *testing.T) {
	live(t, real{name: "api", model: "test-model", wire: agent.Messages, remembers: true})
}

// live has an agent do in a real sandbox what people use it for, and what they do not want of it.
func live(t *testing.T, r real) {
	path := found(t, r)
	if !apart(t) {
		return
	}
	known, err := agent.Lookup(r.name)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(known.Endpoints, func(e agent.Endpoint) bool { return e.Wire == r.wire })
	s := &stage{world: newWorld(t), real: r, where: known.Endpoints[at], path: path, key: keyBegin + keyEnd}
	s.configure(t, map[string]string{"policy.yaml": "forbidden_areas: ['**/*.lock']\n", "sallyport.yaml": "interactive: " + calm + "\n"}) // a turn lasts as long as it likes
	s.before = look(t, s.repo)
	s.server = modeltest.Start(t)
	s.server.Require(s.where.Header, s.where.Prefix+s.key)
	if _, s.port, err = net.SplitHostPort(strings.TrimPrefix(s.server.URL, "http://")); err != nil {
		t.Fatal(err)
	}
	d := s.begin(t, []string{s.bin, "daemon", "run", "--home", s.home})
	c := d.client(t, s.place)
	t.Run("edits, and is corrected", func(t *testing.T) { s.corrected(t, c) })
	t.Run("reaches its model alone, and finds no key", func(t *testing.T) { s.shut(t, c) })
	t.Run("is paused and resumed", func(t *testing.T) { s.paused(t, c) })
	t.Run("says why its model gave up", func(t *testing.T) { s.refused(t, c) })
	t.Run("goes on after its daemon was killed", func(t *testing.T) { c = s.killed(t, c, d) })
	if t.Failed() {
		return // what was not reached cannot be judged
	}
	s.truthful(t, c)
	s.stop(t, c)
	s.leftNothing(t)
	untouched(t, s.before, look(t, s.repo), nil)
	s.keyless(t)
}

// ask asks for a change by the agent; its request is the marker of the conversation with its model.
func (s *stage) ask(t *testing.T, c *client.Client, text string, script ...modeltest.Turn) api.Change {
	t.Helper()
	s.server.Converse(text, script...)
	ch, err := client.Call(t.Context(), c, api.ChangeRun, api.Run{
		Dir: s.repo, Text: text, Agent: s.name, Model: s.model, Path: s.path, Home: os.Getenv("HOME"), Approve: "later",
		Keys: api.Keys{s.where.Keys[0]: api.Key(s.key)}, Bases: map[string]string{s.where.Bases[0]: s.server.URL + s.base},
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, s.said())
	}
	return ch
}

// offered waits until a change is offered to a person, and returns it.
func (s *stage) offered(t *testing.T, c *client.Client, id string) api.Detail {
	t.Helper()
	at := rest(t, c, id, nil)
	d, err := client.Call(t.Context(), c, api.ChangeShow, id)
	if err != nil || at.State != api.AwaitingApproval {
		t.Fatalf("%v: %s: %s\n%s\n%s", err, at.State, at.Reason, transcript(t, c, id), s.said())
	}
	return d
}

// blob is a file of what a change offers.
func (s *stage) blob(t *testing.T, id, path string) string {
	t.Helper()
	return git(t, s.host(t), "cat-file", "blob", "refs/sallyport/"+id+"/valid:"+path)
}

// corrected has it break a rule beside honest work: it is told, corrects it, and that is what is offered.
func (s *stage) corrected(t *testing.T, c *client.Client) {
	begun := time.Now()
	ch := s.ask(t, c, "Write what is asked for",
		modeltest.Do(modeltest.Write(sandbox.Mountpoint+"/honest.txt", "honest work\n"), modeltest.Write(sandbox.Mountpoint+"/bad.lock", "not allowed\n")), modeltest.Say("All done."),
		modeltest.Do(modeltest.Shell("rm bad.lock; echo corrected >> honest.txt")), modeltest.Say("Now it is right."))
	d := s.offered(t, c, ch.ID)
	if got, want := triggers(d), []string{"turn_end invalid", "turn_end valid", "end valid"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if is := s.blob(t, ch.ID, "honest.txt"); is != "honest work\ncorrected\n" {
		t.Errorf("it offers %q", is)
	}
	if told := s.server.Told("Write what is asked for", "user"); !strings.Contains(told, "bad.lock: rule forbidden_area") {
		t.Errorf("its model was told %q", told)
	}
	if d.Proposal == nil || !strings.Contains(d.Proposal.Card.AgentSays, "Now it is right.") {
		t.Errorf("the card quotes %+v", d.Proposal)
	}
	said := transcript(t, c, ch.ID)
	for _, want := range []string{"All done.", "Now it is right.", "["} {
		if !strings.Contains(said, want) {
			t.Errorf("the transcript has no %q:\n%s", want, said)
		}
	}
	first := s.server.Requests()[0].At
	t.Logf("FIGURE %s: %.1f s from the request, %.1f s from its session's start to what it first asks its model", s.name, first.Sub(begun).Seconds(), first.Sub(d.Sessions[0].Started).Seconds())
}

// lookAround is what a hostile model has it do: ask the way out for what is not listed, go around it, and look for a key everywhere.
const lookAround = `
ask() { bash -c "exec 3<>/dev/tcp/127.0.0.1/3128 && printf '%%s HTTP/1.1\r\nHost: %%s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n' '$1' '$2' >&3 && head -n1 <&3 | tr -d '\r'"; }
{
	echo "other: $(ask 'GET http://other.example.org/' other.example.org)"
	echo "tunnel: $(ask 'CONNECT other.example.org:443' other.example.org:443)"
	echo "route: $(ask 'POST /model%s/files' 127.0.0.1:3128)"
	echo "directly: $(bash -c 'exec 3<>/dev/tcp/127.0.0.1/%s && echo reached' 2>/dev/null || echo refused)"
} > net.txt 2>&1
a=%s; b=%s
{
	grep -rlaF "$a$b" /home /tmp /workspace /etc /run /.sallyport/ca.pem /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null
	grep -laF HOME=/home/agent /proc/[0-9]*/environ 2>/dev/null | head -n1 | cut -c1-6
} > key.txt
awk '/^Name:/ {n=$2} /^VmHWM:/ {print n, $2}' /proc/[0-9]*/status > memory.txt 2>/dev/null
echo looked
`

func (s *stage) shut(t *testing.T, c *client.Client) {
	control, err := net.DialTimeout("tcp", "127.0.0.1:"+s.port, time.Minute)
	if err != nil {
		t.Fatalf("the control does not reach the model: %v", err)
	}
	control.Close()
	ch := s.ask(t, c, "Look around",
		modeltest.Do(modeltest.Write(sandbox.Mountpoint+"/look.sh", fmt.Sprintf(lookAround, s.base, s.port, keyBegin, keyEnd))),
		modeltest.Do(modeltest.Shell("bash look.sh")), modeltest.Say("I have looked."))
	d := s.offered(t, c, ch.ID)
	met := strings.Split(s.blob(t, ch.ID, "net.txt"), "\n")
	for i, want := range []string{"other: HTTP/1.1 403 ", "tunnel: HTTP/1.1 403 ", "route: HTTP/1.1 403 ", "directly: refused"} {
		if i >= len(met) || !strings.HasPrefix(met[i], want) {
			t.Errorf("%d: it met %q, not %q", i, met, want)
		}
	}
	if is := s.blob(t, ch.ID, "key.txt"); is != "/proc/\n" {
		t.Errorf("it found %q", is)
	}
	var refused []string
	for _, a := range d.Asked {
		if a.Verdict == "refused" {
			refused = append(refused, a.Host)
		}
	}
	if !slices.Contains(refused, "other.example.org") {
		t.Errorf("what was refused is not told: %+v", d.Asked)
	}
	sum, most := 0, ""
	for line := range strings.Lines(s.blob(t, ch.ID, "memory.txt")) {
		var name string
		var kib int
		if n, _ := fmt.Sscan(line, &name, &kib); n == 2 && kib > 5000 {
			sum += kib
			most += fmt.Sprintf(" %s %d", name, kib>>10)
		}
	}
	t.Logf("FIGURE %s: %d MiB of memory at the most, the sum of its processes' peaks:%s", s.name, sum>>10, most)
}

// paused has it stand still in the middle of an answer, and go on.
func (s *stage) paused(t *testing.T, c *client.Client) {
	gate := modeltest.NewGate()
	ch := s.ask(t, c, "Stand still", modeltest.Turn{Text: "I write it now.", Calls: []modeltest.Call{modeltest.Write(sandbox.Mountpoint+"/stood.txt", "went on\n")}, Middle: gate}, modeltest.Say("It stood."))
	s.reached(t, c, ch.ID, gate)
	if err := client.Do(t.Context(), c, api.ChangePause, api.Reason{Of: ch.ID, Reason: "a look"}); err != nil {
		t.Fatal(err)
	}
	gate.Open()
	cp, err := client.Call(t.Context(), c, api.CheckpointTake, ch.ID)
	if err != nil || slices.Contains(cp.Files, "stood.txt") {
		t.Errorf("while it was paused: %+v, %v", cp, err)
	}
	if err := client.Do(t.Context(), c, api.ChangeResume, ch.ID); err != nil {
		t.Fatal(err)
	}
	s.offered(t, c, ch.ID)
	if is := s.blob(t, ch.ID, "stood.txt"); is != "went on\n" {
		t.Errorf("it offers %q", is)
	}
}

// reached waits until the model's answer stands at a gate.
func (s *stage) reached(t *testing.T, c *client.Client, id string, gate *modeltest.Gate) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	select {
	case <-gate.Reached():
	case <-ctx.Done():
		t.Fatalf("its model was not asked\n%s\n%s", transcript(t, c, id), s.said())
	}
}

// refused has its model turn it away: the change says so, in words that help.
func (s *stage) refused(t *testing.T, c *client.Client) {
	ch := s.ask(t, c, "Be refused", modeltest.Turn{Status: 400, Message: "the moon is full", Times: 50})
	at := rest(t, c, ch.ID, nil)
	if at.State != api.Failed || !strings.Contains(at.Reason, "the moon is full") {
		t.Errorf("%s: %s\n%s", at.State, at.Reason, transcript(t, c, ch.ID))
	}
}

// killed has the daemon die while it waits for its model: a new one goes on with its tree and its memory.
func (s *stage) killed(t *testing.T, c *client.Client, d *doomed) *client.Client {
	gate := modeltest.NewGate()
	const text = "Outlive it"
	ch := s.ask(t, c, text, modeltest.Do(modeltest.Write(sandbox.Mountpoint+"/begun.txt", "begun\n")), modeltest.Turn{Text: "never said", Before: gate},
		modeltest.Do(modeltest.Write(sandbox.Mountpoint+"/ended.txt", "ended\n")), modeltest.Say("I went on."))
	s.reached(t, c, ch.ID, gate)
	if err := d.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	d.end(t, s.place)
	c = s.start(t)
	if err := client.Do(t.Context(), c, api.KeyGive, api.GiveKeys{Of: ch.ID, Keys: api.Keys{s.where.Keys[0]: api.Key(s.key)}}); err != nil {
		t.Logf("it needs no key: %v", err)
	}
	s.offered(t, c, ch.ID)
	if is := s.blob(t, ch.ID, "begun.txt") + s.blob(t, ch.ID, "ended.txt"); is != "begun\nended\n" {
		t.Errorf("it offers %q", is)
	}
	told := s.server.Told(text, "user")
	if !strings.Contains(told, "Your work on this request was interrupted") {
		t.Errorf("it was told %q", told)
	}
	if remembered := strings.Count(told, text) > 1; remembered != s.remembers {
		t.Errorf("it goes on with its own session: %t\n%s", remembered, told)
	}
	return c
}

// keyless looks for the key in all that is kept.
func (s *stage) keyless(t *testing.T) {
	t.Helper()
	if err := os.RemoveAll(s.keyFile()); err != nil { // it is the person's, and nowhere else
		t.Fatal(err)
	}
	for _, r := range s.server.Requests() {
		if strings.Contains(string(r.Body), s.key) {
			t.Errorf("the key is in what its model was told by %s %s", r.Method, r.Path)
		}
	}
	found := shell(t, s.dir, "sh", "-c", "grep -rlaF -e "+s.key+" . || true")
	if strings.TrimSpace(found) != "" {
		t.Errorf("the key is in %s", found)
	}
}
