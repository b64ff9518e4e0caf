package live

import (
	"testing"

	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/session"
	"sallyport/internal/port/egress"
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
