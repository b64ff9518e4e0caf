// Package web is what the drivers share whose platforms have an API over HTTP and web sockets.
//
// No error of it shows a URL: Telegram has the token there, and Slack a ticket. No redirect is followed: a token goes to the host that it is
// for, and to no other.
package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/port/channel"
)

// AnswerBytesMax is the longest answer that is read.
const AnswerBytesMax = 16 << 20

// Client asks. How long an answer may take says the context of each request.
var Client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// Answer is what a server said.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Ask sends a request with a body in JSON, or none, and returns what the server said, whatever its status is.
func Ask(ctx context.Context, method, address string, header http.Header, body any) (Answer, error) {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return Answer{}, err
		}
		content = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, address, content)
	if err != nil {
		return Answer{}, bare(err)
	}
	for name, values := range header {
		req.Header[name] = values
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}

	resp, err := Client.Do(req)
	if err != nil {
		return Answer{}, bare(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, AnswerBytesMax+1))
	switch {
	case err != nil:
		return Answer{}, bare(err)
	case len(text) > AnswerBytesMax:
		return Answer{}, fmt.Errorf("the server answers with more than %d bytes", AnswerBytesMax)
	}
	return Answer{Status: resp.StatusCode, Header: resp.Header, Body: text}, nil
}

// bare returns an error without the URL that net/http tells of.
func bare(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// laterMax is the longest wait that is believed.
const laterMax = 24 * time.Hour

// Later is a limit that a platform told of in seconds; at least one.
func Later(seconds float64, all bool) *channel.Later {
	wait := laterMax
	if seconds < laterMax.Seconds() {
		wait = time.Duration(math.Max(seconds, 1) * float64(time.Second))
	}
	return &channel.Later{Until: time.Now().Add(wait), All: all}
}

// Seconds reads a header Retry-After; 0 if it says nothing.
func Seconds(header http.Header) float64 {
	seconds, err := strconv.ParseFloat(header.Get("Retry-After"), 64)
	if err != nil || math.IsNaN(seconds) {
		return 0
	}
	return seconds
}

// Said is what a platform said, as part of an error: one short line, without the secrets that were sent to it.
func Said(text string, secrets ...string) string {
	for _, s := range secrets {
		if s != "" {
			text = strings.ReplaceAll(text, s, "[secret]")
		}
	}
	return inert.Short(text, 200)
}

// API returns where a platform's API is, as the setting api says among all that a person has said of the channel, or by default. Errors:
// problem.Usage.
func API(known []channel.Setting, said map[string]string) (string, error) {
	all, err := channel.Check(known, said)
	if err != nil {
		return "", err
	}
	return base(all["api"])
}

// base checks a setting that says where an API is, and returns it without a slash at its end. Over plain HTTP only this machine is spoken
// with: a token is in what is sent. Errors: problem.Usage.
func base(setting string) (string, error) {
	refused := func(why string) error {
		return problem.Errorf(problem.Usage, "sallyport channel add --help", "the setting api is %q: %s", inert.Short(setting, 100), why)
	}
	u, err := url.Parse(setting)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", refused("it has to be like https://host or https://host/path")
	case u.Scheme != "https" && u.Scheme != "http":
		return "", refused("it has to begin with https://")
	case u.Scheme == "http" && !local(u.Hostname()):
		return "", refused("over http:// it can only be this machine, 127.0.0.1")
	}
	return strings.TrimRight(setting, "/"), nil
}

// local says whether a host is this machine.
func local(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Token reads a credential: one word.
func Token(credential func() (string, error)) (string, error) {
	text, err := credential()
	if err != nil {
		return "", err
	}
	return Word(text)
}

// Word checks a token that was read: one word, without what a header cannot hold.
func Word(text string) (string, error) {
	text = strings.TrimSpace(text)
	if text == "" || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", problem.Errorf(problem.Refused, "", "the credential of the channel is not a token: it has to be one word in one line")
	}
	return text, nil
}
