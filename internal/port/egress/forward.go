package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

var (
	errIdle = errors.New("no byte came or went for too long")
	errGone = errors.New(whyGone)
)

const whyGone = "the program that asked closed its connection"

// exchange is one request and its answer.
type exchange struct {
	*client
	a     Answer
	ctx   context.Context
	end   context.CancelCauseFunc
	idle  *time.Timer
	body  *upload
	more  map[string]string         // headers that go with the route's credential
	meter *meter                    // of a route whose usage is counted
	wrote atomic.Bool               // the request went out whole
	moved atomic.Pointer[time.Time] // when Route.Moved was told last
}

// relay forwards one request that is allowed, and reports whether another may follow.
func (c *client) relay(a Answer) bool {
	if a.head.length > c.cfg.Limits.RequestBytes {
		return c.refuse(a.refuse(http.StatusRequestEntityTooLarge, whyBody))
	}
	ctx, end := context.WithCancelCause(c.ctx)
	defer end(nil)
	x := &exchange{client: c, a: a, ctx: ctx, end: end}
	if a.Route == nil {
		if _, a = c.names.lookup(ctx, a); a.Status != 0 {
			return c.refuse(a)
		}
	} else {
		over, refused := x.admit()
		if a = refused; a.Status != 0 {
			return c.refuse(a)
		}
		defer over()
		if a = x.present(); a.Status != 0 {
			return c.refuse(a)
		}
		x.meter = newMeter(a)
	}
	x.idle = time.AfterFunc(x.patience(), func() { end(errIdle) })
	defer x.idle.Stop()
	return x.run()
}

// admit asks the route's owner, such as a budget.
func (x *exchange) admit() (over func(), a Answer) {
	if x.a.Route.Admit == nil {
		return func() {}, x.a
	}
	over, err := x.a.Route.Admit(x.ctx)
	if err != nil {
		return nil, x.a.refuse(http.StatusTooManyRequests, plain(err.Error()))
	}
	if over == nil {
		over = func() {}
	}
	return over, x.a
}

// present takes the route's credential as it is now.
func (x *exchange) present() Answer {
	if x.a.Route.Credential == nil {
		return x.a
	}
	value, more, err := x.a.Route.Credential.Present(x.ctx)
	if err != nil {
		return x.a.refuse(http.StatusUnauthorized, plain(err.Error()))
	}
	route := *x.a.Route
	route.Value = value
	x.a.Route, x.more = &route, more
	return x.a
}

// renewed answers a request whose credential is not taken any more: it may be asked again, with another one.
func (x *exchange) renewed() Answer {
	if err := x.a.Route.Credential.Refused(x.ctx, x.a.Route.Value); err != nil {
		return x.a.refuse(http.StatusUnauthorized, plain(err.Error()))
	}
	return x.a.refuse(http.StatusServiceUnavailable, "its login has just been renewed; ask again")
}

// run sends the request up and the answer back.
func (x *exchange) run() bool {
	if x.a.head.expects && x.a.head.length != 0 {
		io.WriteString(x.w, "HTTP/1.1 100 Continue\r\n\r\n")
		if x.w.Flush() != nil {
			return false
		}
	}
	x.body = newUpload(x.client, x.a.head.length, x.live, x.meter.asked)
	x.body.free = !x.a.counted()
	if x.a.Route != nil && x.a.Route.Wire != "" {
		x.body.ask = &asking{}
	}
	stop, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		x.body.gone(stop, func() { x.end(errGone) })
	}()
	resp, err := x.transport().RoundTrip(x.request())
	var keep bool
	var failed Answer
	if err == nil {
		x.live()
		failed = x.acceptable(resp)
	} else {
		x.body.stop() // it may still be read, and says why it ended only then
		failed = x.failure(err)
	}
	if failed.Status == 0 {
		x.decided(x.a, Allowed)
		keep = x.answer(resp)
	}
	if resp != nil {
		resp.Body.Close()
	}
	x.end(nil) // nothing reads the body any more
	close(stop)
	whole := x.body.stop()
	<-watched
	x.meter.close(x.wrote.Load())
	if failed.Status != 0 {
		if whole { // nothing of its body is left that could be taken for a request
			failed.head.length = 0
		}
		return x.refuse(failed)
	}
	if !whole {
		x.linger()
	}
	return keep && whole
}

func (x *exchange) transport() *http.Transport {
	if x.a.Route != nil {
		return x.serving.routes
	}
	return x.serving.hosts
}

// request is what goes up: the path as it was judged, and only headers that mean something end to end.
func (x *exchange) request() *http.Request {
	a := x.a
	scheme, usual := "http", uint16(httpPort)
	if x.tunnel != nil && x.tunnel.Way == Inspect {
		scheme, usual = "https", httpsPort
	}
	host := a.Host
	if a.Port != usual {
		host = fmt.Sprintf("%s:%d", a.Host, a.Port)
	}
	u := &url.URL{Scheme: scheme, Host: net.JoinHostPort(a.Host, fmt.Sprint(a.Port)), Opaque: a.Path, RawQuery: a.Query}
	h := endToEnd(a.head.header)
	withoutOverrides(h)
	if a.Route != nil {
		u, host = a.Route.below(u.Opaque, u.RawQuery)
		withoutCredentials(h)
		wholeOnly(h)
		if a.Route.Header != "" {
			h.Set(a.Route.Header, a.Route.Value.Reveal())
		}
		for name, value := range x.more {
			h.Set(name, value)
		}
	}
	if _, ok := h["User-Agent"]; !ok {
		h["User-Agent"] = []string{""} // else the library adds its own
	}
	r := &http.Request{Method: a.Method, URL: u, Host: host, Header: h, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	if a.head.length != 0 {
		r.Body, r.ContentLength = x.body, a.head.length
	}
	return r.WithContext(httptrace.WithClientTrace(x.ctx, &httptrace.ClientTrace{
		WroteRequest: func(i httptrace.WroteRequestInfo) { x.wrote.Store(i.Err == nil) },
	}))
}

// at is the host and port of a route's base.
func (r Route) at() (string, uint16) {
	if port, why := portNumber(r.Base.Port()); why == "" {
		return r.Base.Hostname(), port
	}
	if r.Base.Scheme == "http" {
		return r.Base.Hostname(), httpPort
	}
	return r.Base.Hostname(), httpsPort
}

// below is the URL of a path of a route, and the Host that it is asked with.
func (r Route) below(path, query string) (*url.URL, string) {
	base := strings.TrimSuffix(r.Base.EscapedPath(), "/")
	if r.Base.RawQuery != "" {
		query = strings.TrimSuffix(r.Base.RawQuery+"&"+query, "&")
	}
	return &url.URL{Scheme: r.Base.Scheme, Host: r.Base.Host, Opaque: base + path, RawQuery: query}, r.Base.Host
}

// acceptable judges an answer that came: one that would lead elsewhere is not passed on where a credential went out with the request.
func (x *exchange) acceptable(resp *http.Response) Answer {
	switch {
	case resp.StatusCode == http.StatusSwitchingProtocols:
		return x.a.refuse(http.StatusBadGateway, "the endpoint answered that it switches to another protocol")
	case x.a.Route != nil && resp.StatusCode/100 == 3 && resp.StatusCode != http.StatusNotModified:
		return x.a.refuse(http.StatusBadGateway, fmt.Sprintf("the endpoint redirects (%d), and the host sends a credential nowhere else; set base: to the URL that it redirects to", resp.StatusCode))
	case x.a.Route != nil && x.a.Route.Credential != nil && resp.StatusCode == http.StatusUnauthorized:
		x.meter.answered(resp)
		return x.renewed()
	case x.a.Route != nil:
		if why := readable(resp); why != "" {
			return x.a.refuse(http.StatusBadGateway, why)
		}
	}
	return Answer{}
}

// failure says in one clause why no answer came.
func (x *exchange) failure(err error) Answer {
	cause := context.Cause(x.ctx)
	switch why := x.body.why(); {
	case errors.Is(why, errTooMuch):
		return x.a.refuse(http.StatusRequestEntityTooLarge, whyBody)
	case errors.As(why, new(errAsked)):
		return x.a.refuse(http.StatusForbidden, why.Error())
	case errors.Is(why, errSent):
		return x.a.refuse(http.StatusForbidden, whySent)
	case errors.Is(cause, errIdle):
		return x.a.refuse(http.StatusGatewayTimeout, errIdle.Error())
	case errors.Is(cause, errGone):
		return x.a.refuse(http.StatusBadGateway, whyGone)
	case why != nil && !errors.Is(why, errStopped):
		return x.a.refuse(http.StatusBadRequest, "its body does not fit its headers")
	}
	return x.a.refuse(http.StatusBadGateway, because(err))
}

// because names what went wrong on the way up. An error's own text may name what is inside this machine's network.
func because(err error) string {
	var name *net.DNSError
	var certificate *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	var timeout net.Error
	switch {
	case errors.As(err, &name):
		return "its name was not found"
	case errors.As(err, &certificate), errors.As(err, &unknown):
		return "its certificate is not valid"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens there"
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "it did not answer in time"
	case errors.Is(err, context.Canceled):
		return "this session ends"
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return "this machine has no route to it"
	}
	return "the connection to it broke"
}
