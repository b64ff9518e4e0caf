package login

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"time"

	"sallyport/internal/base/problem"
	"sallyport/internal/rule/credential"
	"sallyport/internal/rule/secret"
)

const (
	renewTime      = 30 * time.Second
	answerBytesMax = 64 << 10
)

// tokens are those of an answer, on top of what was there.
func (a answer) tokens(used tokens) tokens {
	t := used
	t.access, t.ends = secret.Hold(a.Access), a.ends
	if a.Renewal != "" {
		t.renewal = secret.Hold(a.Renewal)
	}
	return t
}

// renew renews a login once, unless somebody else has done so meanwhile, and returns what counts then. What has been asked for is waited
// for and written even if nobody wants it any more: the token that it was asked with may be good for nothing by then.
func (l *Login) renew(ctx context.Context, t tokens) (tokens, error) {
	if err := l.may(t); err != nil {
		return t, err
	}
	folder, err := l.lock(ctx)
	if err != nil {
		return t, err
	}
	defer folder.Close() // the kernel takes it back in any case
	now, err := l.read()
	if err != nil || !now.access.Equal(t.access) && l.unkept == nil {
		return now, err // another has renewed it
	}

	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewTime)
	defer cancel()
	a, err := l.ask(ctx, t)
	if err != nil {
		return t, l.note(t, err)
	}
	l.hold(secret.Hold(a.Access), secret.Hold(a.Renewal), secret.Hold(a.Identity))
	l.made, l.since = secret.Hold(a.Access), time.Now()
	return l.keep(ctx, t, a)
}

// may says why a login is not renewed now.
func (l *Login) may(t tokens) error {
	if err := l.over(t); err != nil {
		return err
	}
	if t.renewal.Empty() {
		return l.ended()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if wait := pause - time.Since(l.failed); wait > 0 {
		return problem.Errorf(problem.Unavailable, l.kind.Again,
			"the login of %s could not be renewed a moment ago; sallyport tries again in %s", l.kind.Name, wait.Round(time.Second))
	}
	return nil
}

// note remembers why a renewal failed.
func (l *Login) note(t tokens, err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if errors.Is(err, credential.ErrMissing) {
		l.refused, l.why = t.renewal, err
		return err
	}
	l.failed = time.Now()
	return err
}

// final are the words by which an endpoint says that a login is over.
var final = []string{"invalid_grant", "refresh_token_expired", "refresh_token_reused", "refresh_token_invalidated"}

// ask asks for other tokens. What an endpoint says is not told on but by its status: it may hold what it was sent.
func (l *Login) ask(ctx context.Context, t tokens) (a answer, err error) {
	body, err := json.Marshal(map[string]string{"grant_type": "refresh_token", "refresh_token": t.renewal.Reveal(), "client_id": l.kind.Client})
	if err != nil {
		return a, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, l.kind.Renewal, bytes.NewReader(body))
	if err != nil {
		return a, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "sallyport")
	resp, err := l.of.Client.Do(r)
	if err != nil {
		return a, l.unreachable(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, answerBytesMax))
	if err != nil {
		return a, l.unreachable(err)
	}
	if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode/100 == 4 && slices.Contains(final, code(raw)) {
		return a, problem.Case(credential.ErrMissing, l.kind.Again,
			"the login of %s has ended: %s renews it no more (status %d); log in again with %s", l.kind.Name, r.URL.Host, resp.StatusCode, l.kind.Again)
	}
	if resp.StatusCode != http.StatusOK {
		return a, l.unreachable(fmt.Errorf("%s answered with status %d", r.URL.Host, resp.StatusCode))
	}
	if err := json.Unmarshal(raw, &a); err != nil || a.Access == "" {
		return a, l.unreachable(fmt.Errorf("%s answered without a token", r.URL.Host))
	}
	for _, v := range []string{a.Access, a.Renewal} {
		if err := credential.Sound(secret.Hold(v)); err != nil && v != "" {
			return a, l.unreachable(fmt.Errorf("%s answered with a token that is none: %w", r.URL.Host, err))
		}
	}
	if a.ends = ending(a.Access); a.Seconds > 0 {
		a.ends = time.Now().Add(time.Duration(a.Seconds) * time.Second)
	}
	return a, nil
}

func (l *Login) unreachable(err error) error {
	var name *net.DNSError
	if errors.As(err, &name) {
		err = fmt.Errorf("the name %s was not found", name.Name)
	}
	return problem.Errorf(problem.Unavailable, "sallyport agent list", "the login of %s cannot be renewed now: %w", l.kind.Name, err)
}

// code is the word for what went wrong in an answer, in either of the two forms that there are.
func code(raw []byte) string {
	var said struct {
		Error json.RawMessage `json:"error"`
		Code  string          `json:"code"`
	}
	if json.Unmarshal(raw, &said) != nil {
		return ""
	}
	var word string
	var part struct {
		Code string `json:"code"`
	}
	switch {
	case json.Unmarshal(said.Error, &word) == nil:
		return word
	case json.Unmarshal(said.Error, &part) == nil && part.Code != "":
		return part.Code
	}
	return said.Code
}
