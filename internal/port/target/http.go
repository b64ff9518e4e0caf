package target

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/rule/trust"
)

// errFar refuses a connection that leaves the machine.
var errFar = errors.New("the address leads to another machine, and a probe that a repository proposes may ask only this one")

// near refuses to connect to what is no address of this machine's own, whatever a name led to.
func near(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil || !to.Addr().Unmap().IsLoopback() {
		return errFar
	}
	return nil
}

// askHTTP makes one request. It answers if head and body (or the first MiB of it) come in time and its status is 200–299.
func (h Host) askHTTP(ctx context.Context, t trust.Target, at Place) error {
	whole, cancel := context.WithTimeout(ctx, t.Probe.Timeout)
	defer cancel()
	dialer := &net.Dialer{}
	if t.Proposed {
		dialer.Control = near
	}
	client := &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{ // no proxy, nothing kept from the last try
			DialContext: dialer.DialContext, DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: 64 << 10,
		},
	}
	refused := func(format string, args ...any) error {
		return problem.Errorf(problem.Refused, "sallyport target show --repo "+inert.Path(at.Project.Top), "GET %s: "+format,
			append([]any{h.clean(inert.Line(t.Probe.HTTP))}, args...)...)
	}
	request, err := http.NewRequestWithContext(whole, http.MethodGet, t.Probe.HTTP, nil)
	if err != nil {
		return refused("%w", err)
	}
	request.Header.Set("User-Agent", "sallyport")
	answer, err := client.Do(request)
	if err == nil {
		_, err = io.Copy(io.Discard, io.LimitReader(answer.Body, answerBytesMax))
		_ = answer.Body.Close() // it was read as far as it is wanted
	}
	switch {
	case err == nil && answer.StatusCode/100 == 2:
		return nil
	case err == nil:
		return refused("the answer is %d", answer.StatusCode)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case whole.Err() != nil:
		return refused("no whole answer within %s", t.Probe.Timeout.Round(time.Millisecond))
	}
	return refused("%s", inert.Line(plain(err).Error()))
}

// plain is what the system says, without the address that net puts before it.
func plain(err error) error {
	var number syscall.Errno
	var at *url.Error
	switch {
	case errors.Is(err, errFar):
		return errFar
	case errors.As(err, &number):
		return number
	case errors.As(err, &at):
		return at.Err
	}
	return err
}
