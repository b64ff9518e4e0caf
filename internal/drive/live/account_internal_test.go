package live

import (
	"context"
	"io"
	"testing"

	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/session"
	"sallyport/internal/port/egress"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/rule/secret"
)

// An agent asks for the same thousands of times a second. To look for secrets in it takes a hundred times as long as to count it.
func TestWhatIsAskedWithoutEndIsLookedAtOnceItIsWritten(t *testing.T) {
	a := &account{ledger: &ledger.Ledger{Parts: ledger.Parts{Secrets: secret.Default()}}, wake: make(chan struct{}, 1), at: map[session.Asked]int{}}
	d := egress.Decision{Host: "example.org", Port: 443, Method: "CONNECT", Verdict: egress.Refused, Why: "no egress rule of this sandbox names it"}
	a.decided(d)
	if n := testing.AllocsPerRun(100, func() { a.decided(d) }); n > 2 {
		t.Errorf("each takes %v pieces of memory", n)
	}
	if lines := a.take(); len(lines) != 1 || lines[0].Count != 102 {
		t.Errorf("%+v", lines)
	}
}

// Hosts, paths and names of models are an agent's words.
func TestWhatAnAgentAsksForIsKeptWithoutSecrets(t *testing.T) {
	const planted = "ghp_" + "9fK2mQx7LbR4vTz1WcN8sYd3HjP6gUe5AoXi"
	l := &ledger.Ledger{Parts: ledger.Parts{Secrets: secret.Default()}}
	kept := (&account{ledger: l}).clean(session.Asked{Host: planted, Method: "GET", Why: "no rule names /" + planted})
	if kept != (session.Asked{Host: "[secret: github-token]", Method: "GET", Why: "no rule names /[secret: github-token]"}) {
		t.Errorf("%+v", kept)
	}
	spends := &spending{b: &Budget{Ledger: l}, models: map[string]bool{}}
	if model := spends.named(planted); model != "[secret: github-token]" || !spends.models[model] {
		t.Errorf("it counts for %q", model)
	}
}

// prints is a sandbox in which a program prints something and ends.
type prints struct {
	sandbox.Driver
	sandbox.Process
	text string
}

func (p prints) Start(_ context.Context, spec sandbox.Spec) (sandbox.Process, error) {
	_, err := io.WriteString(spec.Stdout, p.text)
	return p, err
}

func (prints) Wait() (sandbox.Exit, error) { return sandbox.Exit{}, nil }

// A secret at whose middle the end begins that is kept is none of it.
func TestWhatACommandPrintsIsKeptWithoutSecrets(t *testing.T) {
	const planted = "ghp_" + "9fK2mQx7LbR4vTz1WcN8sYd3HjP6gUe5AoXi"
	r := CommandRunner{Sandbox: prints{text: "key " + planted + " and more\n"}, Secrets: secret.Default()}
	ran, err := r.Run(t.Context(), Subject{}, Command{Kept: 29})
	if err != nil || ran.Tail != "cret: github-token] and more\n" {
		t.Errorf("%q, %v", ran.Tail, err)
	}
}
