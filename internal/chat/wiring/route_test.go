package wiring_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sallyport/internal/base/problem"
	"sallyport/internal/base/rapidtest"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/wiring"
	"sallyport/internal/rule/right"
	"sallyport/internal/who/group"
)

// read makes wirings of lines: group mode[/pattern] scope ignored.
func read(lines ...string) (all []wiring.Wiring) {
	for _, line := range lines {
		f := strings.Fields(line)
		mode, pattern, _ := strings.Cut(f[1], "/")
		all = append(all, wiring.Wiring{Conversation: "cnv-1", Group: group.Folder(f[0]), Mode: wiring.Mode(mode), Pattern: pattern, Scope: wiring.Scope(f[2]), Ignored: wiring.Ignored(f[3])})
	}
	return all
}

// who makes a sender of a word: owner, admin of …, member of …, or nobody.
func who(text string) (s wiring.Sender) {
	role, of, _ := strings.Cut(text, " of ")
	switch role {
	case "owner":
		s.Person, s.Over = "psn-1", true
	case "admin":
		s.Person, s.Groups = "psn-2", map[group.Folder]right.Role{group.Folder(of): right.GroupAdmin}
	case "member":
		s.Person, s.Groups = "psn-3", map[group.Folder]right.Role{group.Folder(of): right.Member}
	}
	return s
}

// told is a verdict in one line.
func told(v wiring.Verdict) string {
	out := string(v.Kind)
	if v.Group != "" {
		out += " " + string(v.Group)
	}
	if v.Reason != "" {
		out += ": " + string(v.Reason)
	}
	if v.Kind != wiring.Heard {
		return out
	}
	for _, o := range v.Outcomes {
		out += fmt.Sprintf("; %s %s, %s", o.Group, o.Action, o.Reason)
		if o.Sticks {
			out += ", sticks"
		}
	}
	return out
}

func TestWhatIsSaidReachesTheGroupsThatItIsFor(t *testing.T) {
	const direct, many, threads = conversation.Direct, conversation.Group, conversation.Threaded
	home := wiring.Home{Groups: []group.Folder{"ada", "bob"}, Approver: true}
	alone, open, nobody := home, home, home
	alone.Groups, open.Open, nobody.Approver = alone.Groups[:1], true, false
	for _, c := range []struct {
		name    string
		kind    conversation.Kind
		policy  conversation.Policy
		wirings []string
		sender  string
		text    string
		home    wiring.Home
		want    string
	}{
		{"always, direct", direct, "", []string{"ada pattern/. all drop"}, "member of ada", "hello", home, "heard; ada wake, the pattern matches"},
		{"always, without a text", direct, "", []string{"ada pattern/. all drop"}, "member of ada", "", home, "heard; ada wake, the pattern matches"},
		{"a pattern, as it is written", many, "", []string{"ada pattern/deploy all drop"}, "member of ada", "please deploy it", home, "heard; ada wake, the pattern matches"},
		{"a pattern, in another case", many, "", []string{"ada pattern/deploy all drop"}, "member of ada", "Deploy", home, "dropped: no group engages on it"},
		{"a pattern that is none", many, "", []string{"ada pattern/( all drop"}, "owner", "(", home, "dropped: no group engages on it"},
		{"mentioned by its name", many, "", []string{"ada mention all drop"}, "member of ada", "@Ada hello", home, "heard; ada wake, the group is mentioned"},
		{"mentioned by the account's name", many, "", []string{"ada mention all drop"}, "member of ada", "@port: hello", home, "heard; ada wake, the group is mentioned"},
		{"mentioned by the platform", many, "", []string{"ada mention all drop"}, "member of ada", "hello <@>", home, "heard; ada wake, the group is mentioned"},
		{"another is mentioned", many, "", []string{"ada mention all drop"}, "member of ada", "@bob hello", home, "dropped: no group engages on it"},
		{"not mentioned, kept", many, "", []string{"ada mention all accumulate"}, "member of ada", "hello", home, "heard; ada context, the group is not mentioned"},
		{"each group by itself", many, "", []string{"ada mention all accumulate", "bob pattern/hello all drop"}, "owner", "hello", home,
			"heard; ada context, the group is not mentioned; bob wake, the pattern matches"},
		{"a mention sticks", threads, "", []string{"ada mention-sticky all drop"}, "member of ada", "@ada hello", home, "heard; ada wake, the group is mentioned, sticks"},
		{"after a mention that stuck", threads, "", []string{"ada mention-sticky all drop"}, "member of ada", "stuck: and this", home, "heard; ada wake, the group was mentioned in this thread"},
		{"with no mention that stuck", threads, "", []string{"ada mention-sticky all drop"}, "member of ada", "and this", home, "dropped: no group engages on it"},
		{"after a mention of another", threads, "", []string{"bob mention-sticky all drop"}, "member of bob", "stuck: and this", home, "dropped: no group engages on it"},
		{"after a mention that did not", threads, "", []string{"ada mention all drop"}, "member of ada", "stuck: and this", home, "dropped: no group engages on it"},

		{"known, and a member", many, "", []string{"ada pattern/. known drop"}, "member of ada", "hello", home, "heard; ada wake, the pattern matches"},
		{"known, and the owner", many, "", []string{"ada pattern/. known drop"}, "owner", "hello", home, "heard; ada wake, the pattern matches"},
		{"known, and another's member", many, "", []string{"ada pattern/. known accumulate", "bob mention all drop"}, "member of bob", "hello", home, "dropped: the group listens to people it knows"},
		{"known in one, all in the other", many, "", []string{"ada pattern/. known drop", "bob pattern/. all drop"}, "member of bob", "hello", home,
			"heard; ada ignore, the group listens to people it knows; bob wake, the pattern matches"},

		{"a stranger, strict", many, conversation.Strict, []string{"ada pattern/. all drop"}, "", "hello", home, "dropped: the sender is unknown, and the conversation is strict"},
		{"a stranger, who is asked about", many, conversation.Request, []string{"ada pattern/. all drop"}, "", "hello", home, "ask-sender ada"},
		{"a stranger who wants the second", many, conversation.Request, []string{"ada mention all accumulate", "bob pattern/. all drop"}, "", "hello", home, "ask-sender bob"},
		{"a stranger whom two would answer", many, conversation.Request, []string{"ada pattern/. all drop", "bob pattern/. all drop"}, "", "hello", home, "ask-sender ada"},
		{"a stranger who wants nobody", many, conversation.Request, []string{"ada mention all accumulate"}, "", "hello", home, "dropped: no group engages on it"},
		{"a stranger, and nobody to ask", many, conversation.Request, []string{"ada pattern/. all drop"}, "", "hello", nobody, "dropped: nobody who may decide about it can be reached"},
		{"a stranger, public", many, conversation.Public, []string{"ada pattern/. all drop"}, "", "hello", home, "heard; ada wake, the pattern matches"},
		{"a stranger, public, known", many, conversation.Public, []string{"ada pattern/. known drop"}, "", "hello", home, "dropped: the group listens to people it knows"},
		{"a policy that nobody knows", many, "x", []string{"ada pattern/. all drop"}, "", "hello", home, "dropped: the sender is unknown, and the conversation is strict"},
		{"another's member is a stranger", many, conversation.Request, []string{"ada pattern/. all drop"}, "member of bob", "hello", home, "ask-sender ada"},
		{"permissions off", many, conversation.Request, []string{"ada pattern/. all drop"}, "", "hello", open, "heard; ada wake, the pattern matches"},
		{"permissions off, known", many, conversation.Request, []string{"ada pattern/. known drop"}, "owner", "hello", open, "dropped: the group listens to people it knows"},

		{"a new direct conversation", direct, conversation.Request, nil, "", "hello", home, "ask-place"},
		{"a new place, mentioned", many, conversation.Request, nil, "", "@port hello", home, "ask-place"},
		{"a new place, not mentioned", many, conversation.Request, nil, "owner", "hello", alone, "dropped: no group hears this conversation"},
		{"a new place, public", many, conversation.Public, nil, "", "@port hello", home, "dropped: the conversation is public, and no group hears it"},
		{"a new place, and nobody to ask", direct, conversation.Request, nil, "", "hello", nobody, "dropped: nobody who may decide about it can be reached"},
		{"a new place, strict", direct, conversation.Strict, nil, "", "hello", home, "dropped: the sender is unknown, and the conversation is strict"},
		{"a new place, strict, and a member", direct, conversation.Strict, nil, "member of ada", "hello", home, "ask-place"},
		{"a new place, strict, and the owner", direct, conversation.Strict, nil, "owner", "hello", home, "ask-place"},
		{"a new place, strict, with permissions off", direct, conversation.Strict, nil, "", "hello", open, "ask-place"},
		{"a new place, and a policy that nobody knows", direct, "x", nil, "", "hello", home, "dropped: the sender is unknown, and the conversation is strict"},
		{"the owner, and one group", direct, conversation.Request, nil, "owner", "hello", alone, "wire ada"},
		{"the owner, and one group, and nobody to ask", direct, conversation.Strict, nil, "owner", "hello", wiring.Home{Groups: alone.Groups}, "wire ada"},
		{"an admin of it, and one group", direct, conversation.Request, nil, "admin of ada", "hello", alone, "wire ada"},
		{"a member of it, and one group", direct, conversation.Request, nil, "member of ada", "hello", alone, "ask-place"},
		{"the owner, and two groups", direct, conversation.Request, nil, "owner", "hello", home, "ask-place"},
	} {
		said := wiring.Said{Text: c.text, Account: []string{"port"}, Sender: who(c.sender)}
		said.Mention = strings.Contains(c.text, "<@>")
		if text, ok := strings.CutPrefix(c.text, "stuck: "); ok {
			said.Text, said.Stuck = text, map[group.Folder]bool{"ada": true}
		}
		p := wiring.Compile(c.kind, c.policy, read(c.wirings...))
		if got := told(p.Route(said, c.home)); got != c.want {
			t.Errorf("%s: %s, not %s", c.name, got, c.want)
		}
	}
}

func TestATextMentionIsTheNameAloneAtItsBeginning(t *testing.T) {
	for text, want := range map[string]bool{
		"@Andy hello": true, "@andy": true, "@ANDY's": true, "  @Andy, hello": true, "@Andy: x": true, "@Andy\nx": true,
		"@Andyextra": false, "@Andy_x": false, "@Andy2": false, "@Andyé": false, "hello @Andy": false, "Andy": false, "@": false, "": false, "@An": false,
	} {
		if wiring.Mentions(text, "Andy") != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
	for text, want := range map[string]bool{"@a.b hi": true, "@axb hi": false, "@(x hi": false, "@İlk hi": false} {
		if wiring.Mentions(text, "a.b", "", "ilk") != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}

func TestAWiringIsMadeForTheKindOfItsConversation(t *testing.T) {
	for kind, want := range map[conversation.Kind]string{
		conversation.Direct: "pattern . all drop", conversation.Threaded: "mention-sticky  all drop", conversation.Group: "mention  all drop",
	} {
		w := wiring.New("cnv-1", kind, "ada", time.Time{})
		if got := fmt.Sprint(w.Mode, " ", w.Pattern, " ", w.Scope, " ", w.Ignored); got != want || w.Check() != nil {
			t.Errorf("%s: %s, not %s; %v", kind, got, want, w.Check())
		}
	}
}

func TestAWiringThatIsNoneIsRefused(t *testing.T) {
	for _, line := range []string{"ada pattern all drop", "ada pattern/( all drop", "ada mention/x all drop", "ada loud all drop", "ada mention some drop", "ada mention all keep", `ada pattern/(?=x) all drop`} {
		if err := read(line)[0].Check(); problem.KindOf(err) != problem.Usage || problem.Of(err).Next == "" {
			t.Errorf("%s: %v", line, err)
		}
	}
	long := read("ada pattern/" + strings.Repeat("é", 1000) + " all drop")[0]
	if err := long.Check(); err != nil {
		t.Errorf("a pattern of the greatest length: %v", err)
	}
	long.Pattern += "x"
	if err := long.Check(); problem.KindOf(err) != problem.Usage {
		t.Errorf("one character more: %v", err)
	}
	if p := wiring.Compile(conversation.Direct, "", read("ada pattern/( all drop", "bob mention all drop")); len(p.Broken()) != 1 || p.Broken()["ada"] == nil {
		t.Errorf("%v", p.Broken())
	}
}

func TestWhatOldColumnsSaidIsConverted(t *testing.T) {
	for _, c := range []struct{ scope, rules, want string }{
		{"all", "", "pattern/. all"}, {"all", "x", "pattern/. all"}, {"triggered", "", "mention/ all"}, {"triggered", "^!", "pattern/^! all"},
		{"allowlisted", "", "mention/ known"}, {"allowlisted", "^!", "pattern/^! known"}, {"some", "", "none"}, {"triggered", "(", "none"},
	} {
		for _, kind := range []conversation.Kind{conversation.Group, conversation.Direct, conversation.Threaded} { // what the kind would have is not asked
			w, ok := wiring.Old{Scope: c.scope, Rules: c.rules}.Convert(wiring.New("cnv-1", kind, "ada", time.Time{}))
			got := fmt.Sprintf("%s/%s %s", w.Mode, w.Pattern, w.Scope)
			if !ok {
				got = "none"
			}
			if got != c.want || ok && w.Check() != nil {
				t.Errorf("%s %q in a %s: %s, not %s; %v", c.scope, c.rules, kind, got, c.want, w.Check())
			}
		}
	}
}

// Whatever the wirings and whoever speaks: a group whose scope is known hears nobody whom it does not know, a stranger is heard in a public
// conversation alone, and what is said for nobody is kept by nobody.
func TestNobodyIsHeardWhomTheRulesKeepOut(t *testing.T) {
	line := rapid.Custom(func(t *rapid.T) string {
		return fmt.Sprintf("%s %s %s %s", rapid.SampledFrom([]string{"ada", "bob"}).Draw(t, "group"), rapid.SampledFrom([]string{"pattern/.", "pattern/x", "pattern/(", "mention", "mention-sticky"}).Draw(t, "mode"),
			rapid.SampledFrom([]string{"all", "known"}).Draw(t, "scope"), rapid.SampledFrom([]string{"drop", "accumulate"}).Draw(t, "ignored"))
	})
	rapidtest.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(line, 0, 3).Draw(t, "wirings")
		policy := conversation.Policy(rapid.SampledFrom([]string{"strict", "request_approval", "public", ""}).Draw(t, "policy"))
		p := wiring.Compile(rapid.SampledFrom([]conversation.Kind{conversation.Direct, conversation.Group, conversation.Threaded}).Draw(t, "kind"), policy, read(lines...))
		s := wiring.Said{
			Text: rapid.SampledFrom([]string{"", "x", "@ada", "@port x", "y"}).Draw(t, "text"), Mention: rapid.Bool().Draw(t, "mention"), Account: []string{"port"},
			Sender: who(rapid.SampledFrom([]string{"", "owner", "admin of ada", "member of bob"}).Draw(t, "who")), Stuck: map[group.Folder]bool{"ada": rapid.Bool().Draw(t, "stuck")},
		}
		v := p.Route(s, wiring.Home{Groups: []group.Folder{"ada", "bob"}, Approver: rapid.Bool().Draw(t, "approver")})
		knows := s.Sender.Over
		for i, o := range v.Outcomes {
			known := s.Sender.Over || s.Sender.Groups[o.Group] != ""
			knows = knows || known
			if o.Action != wiring.Ignore && strings.Contains(lines[i], " known ") && !known {
				t.Fatalf("%s heard a stranger: %s", o.Group, told(v))
			}
		}
		switch {
		case v.Kind == wiring.Heard && !knows && policy != conversation.Public:
			t.Fatalf("a stranger is heard: %s", told(v))
		case v.Kind == wiring.Dropped && v.Reason == "", v.Kind == wiring.Heard && len(v.Outcomes) == 0:
			t.Fatalf("%+v", v)
		case !p.Gate(s) && v.Kind != wiring.Dropped:
			t.Fatalf("what the gate keeps out is %s", v.Kind)
		case v.Kind == wiring.Wire && !s.Sender.Over:
			t.Fatalf("wired for %q", s.Sender.Person)
		}
	})
}

func BenchmarkRoute(b *testing.B) {
	p := wiring.Compile(conversation.Group, conversation.Request, read("ada mention all accumulate", "bob pattern/deploy|release known drop"))
	s := wiring.Said{Text: "could somebody please release the thing of yesterday?", Account: []string{"port"}, Sender: who("owner")}
	h := wiring.Home{Groups: []group.Folder{"ada", "bob"}, Approver: true}
	for b.Loop() {
		p.Route(s, h)
	}
}
