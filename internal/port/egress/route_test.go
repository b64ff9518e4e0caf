package egress

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/base/problem"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/rule/secret"
)

func TestTheDoorIsWhereASandboxFindsIt(t *testing.T) {
	if want := fmt.Sprintf("127.0.0.1:%d", sandbox.EgressPort); Inside != want || !strings.HasPrefix(agent.ModelBase, "http://"+Inside+"/") {
		t.Errorf("%s, %s, %s", Inside, want, agent.ModelBase)
	}
	for ours, theirs := range map[string]agent.Wire{wireResponses: agent.Responses, wireChat: agent.Chat, wireMessages: agent.Messages, wireGemini: agent.Gemini} {
		if ours != string(theirs) {
			t.Errorf("%q is %q to agents", ours, theirs)
		}
	}
}

func TestOnlyTheHostsCredentialGoesUpARoute(t *testing.T) {
	var got *http.Request
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "of-the-owner"})
		io.WriteString(w, "ok")
	}))
	defer s.Close()
	w := open(t, func(w *world) {
		route := modelRoute(t, s.URL+"/v1/?api-version=3")
		route.Wire = wireResponses
		w.cfg.Routes = []Route{route}
	})
	resp, body := w.send("POST /model/responses?key=mine&%6Bey=mine&limit=2;access_token=x HTTP/1.1\r\nHost: " + Inside + "\r\nAuthorization: Bearer mine\r\nX-Api-Key: mine\r\n" +
		"x_goog_api_key: mine\r\nOpenAI-Organization: mine\r\nOpenAI-Project: mine\r\nX-Goog-User-Project: mine\r\nCookie: a=mine\r\nProxy-Authorization: mine\r\nX-Auth-Token: mine\r\nX-HTTP-Method-Override: DELETE\r\nAnthropic-Beta: b\r\nsession_id: s\r\nUser-Agent: agent/1\r\n" +
		"Accept-Encoding: gzip\r\nRange: bytes=5-\r\nIf-Range: x\r\nA-IM: gdiff\r\nAccept-Charset: utf-7\r\nForwarded: host=x\r\nContent-Length: 2\r\n\r\n{}")
	if body != "ok" || resp.Header.Get("Set-Cookie") != "" {
		t.Errorf("%q %v", body, resp.Header)
	}
	var all strings.Builder
	got.Header.Write(&all)
	want := "Accept-Encoding: identity\r\nAnthropic-Beta: b\r\nAuthorization: Bearer " + theKey + "\r\nContent-Length: 2\r\nSession_id: s\r\nUser-Agent: agent/1\r\n"
	if all.String() != want || got.URL.RequestURI() != "/v1/responses?api-version=3&limit=2" || "http://"+got.Host != s.URL {
		t.Errorf("up went %s %s\n%s", got.Host, got.URL.RequestURI(), all.String())
	}
	told := w.decisions()
	if len(told) != 1 || told[0].Route != "model" || told[0].Path != "/responses" || strings.Contains(fmt.Sprintf("%+v %+v", told, w.cfg), theKey) {
		t.Errorf("told %+v", told)
	}
}

// A key opens more than a model: what its owner has asked at other times, and work that is done later and counted by nobody.
func TestOfAnEndpointOnlyTheModelsWorkIsAskedFor(t *testing.T) {
	table := agent.Table()
	api := table[slices.IndexFunc(table, func(k agent.Known) bool { return k.Name == "api" })]
	for wire, requests := range map[agent.Wire]map[string]bool{
		agent.Messages: {
			"POST /v1/messages": true, "POST /v1/messages?beta=true": true, "POST /v1/messages/count_tokens": true, "GET /v1/models": true, "GET /v1/models/claude-x": true,
			"POST /v1/messages/batches": false, "GET /v1/messages/batches": false, "GET /v1/messages/batches/b1/results": false, "POST /v1/messages/batches/b1/cancel": false,
			"GET /v1/messages": false, "POST /v1/models": false, "GET /v1/models/a/b": false, "GET /v1/models/": false, "POST /v1/message%73/batches": false, "POST /v1/message%73": false,
		},
		agent.Chat: {
			"POST /chat/completions": true, "GET /models": true, "GET /models/ft:gpt:org::1": true,
			"POST /chat/completion%73": false, "POST /%63hat/completions": false,
			"GET /chat/completions": false, "GET /chat/completions/c1": false, "GET /chat/completions/c1/messages": false, "POST /chat/completions/c1": false,
		},
		agent.Responses: {
			"POST /responses": true, "POST /responses/compact": true, "POST /responses/input_tokens": true, "GET /models?client_version=1": true,
			"GET /responses/r1": false, "GET /responses/r1/input_items": false, "POST /responses/r1/cancel": false, "POST /models/m": false,
		},
		agent.Gemini: {
			"POST /v1beta/models/g-2:generateContent": true, "POST /v1beta/models/g-2:streamGenerateContent?alt=sse": true, "POST /v1/models/g-2:countTokens": true, "GET /v1beta/models": true,
			"POST /v1beta/models/g-2:batchGenerateContent": false, "POST /v1beta/models/v:predictLongRunning": false, "POST /v1beta/models/i:predict": false,
			"POST /v1beta/models/g-2:predict%3AgenerateContent": false, "GET /v1beta/models/v/operations/o1": false, "POST /v1beta/models/:generateContent": false,
		},
	} {
		e := api.Endpoint(agent.Settings{Wire: wire})
		c, err := Config{Routes: []Route{{Name: "model", Base: parseURL(t, e.Base), Methods: []string{"GET", "POST"}, Paths: e.Paths, Only: e.Only, Wire: string(wire)}}}.checked()
		if err != nil {
			t.Fatal(err)
		}
		for request, want := range requests {
			method, target, _ := strings.Cut(request, " ")
			a := c.decide([]byte(method+" /model"+target+" HTTP/1.1\r\nHost: "+Inside+"\r\n\r\n"), nil)
			if (a.Status == 0) != want {
				t.Errorf("%s %s: %d %s", wire, request, a.Status, a.Why)
			}
		}
	}
}

func TestACredentialIsNotSentWhereAnEndpointRedirects(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { t.Errorf("%v came here", r.Header) }))
	defer elsewhere.Close()
	s := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer s.Close()
	w := open(t, func(w *world) { w.cfg.Routes = []Route{modelRoute(t, s.URL)} })
	resp, body := w.send("POST /model/responses HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
	if resp.StatusCode != http.StatusBadGateway || !strings.Contains(body, "redirects (307)") || resp.Header.Get("Location") != "" {
		t.Errorf("%d %q %v", resp.StatusCode, body, resp.Header)
	}
}

func TestABudgetThatIsUsedUpIsTheAnswer(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { t.Error("it was asked") }))
	defer s.Close()
	w := open(t, func(w *world) {
		route := modelRoute(t, s.URL)
		route.Admit = func(context.Context) (func(), error) { return nil, errors.New("the budget of this change is used up") }
		w.cfg.Routes = []Route{route}
	})
	resp, body := w.send("POST /model/responses HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
	if resp.StatusCode != http.StatusTooManyRequests || !strings.Contains(body, "the budget of this change is used up") || resp.Header.Get("X-Should-Retry") != "false" {
		t.Errorf("%d %q %v", resp.StatusCode, body, resp.Header)
	}
	if told := w.decisions(); len(told) != 1 || told[0].Verdict != Refused {
		t.Errorf("told %+v", told)
	}

	free := httptest.NewServer(http.NotFoundHandler())
	defer free.Close()
	over := 0
	for _, wants := range []bool{true, false} { // to know when that is over
		w = open(t, func(w *world) {
			route := modelRoute(t, free.URL)
			route.Admit = func(context.Context) (func(), error) {
				if wants {
					return func() { over++ }, nil
				}
				return nil, nil
			}
			w.cfg.Routes = []Route{route}
		})
		resp, body := w.send(get("/model/models", Inside))
		w.stop()
		if told := w.decisions(); resp.StatusCode != http.StatusNotFound || len(told) != 1 || over != 1 {
			t.Errorf("%d %q, told %+v, %d are over", resp.StatusCode, body, told, over)
		}
	}
}

func TestEachPieceOfAnAnswerIsThereAtOnce(t *testing.T) {
	next := make(chan string)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for words := range next {
			io.WriteString(w, "data: "+words+"\n\n")
			w.(http.Flusher).Flush()
		}
	}))
	defer s.Close()
	w := open(t, func(w *world) { w.cfg.Routes = []Route{modelRoute(t, s.URL)} })
	resp, err := func() (*http.Response, error) {
		go func() { next <- "0" }()
		return w.direct().Get("http://" + Inside + "/model/models")
	}()
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for i := range 5 {
		for lines.Scan() && lines.Text() == "" {
		}
		if lines.Text() != fmt.Sprintf("data: %d", i) {
			t.Fatalf("%d: %q", i, lines.Text())
		}
		if i < 4 {
			next <- fmt.Sprint(i + 1) // only once the piece before was read
		}
	}
	close(next)
}

func TestAModelIsNotLeftWorkingForWhoHasGone(t *testing.T) {
	asked, left := make(chan bool), make(chan bool)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		close(asked)
		<-r.Context().Done()
		close(left)
	}))
	defer s.Close()
	w := open(t, func(w *world) { w.cfg.Routes = []Route{modelRoute(t, s.URL)} })
	c := w.connect()
	io.WriteString(c, "POST /model/responses HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
	<-asked
	c.Close()
	<-left
	w.stop()
	if told := w.decisions(); len(told) != 1 || told[0].Verdict != Failed || told[0].Why != whyGone {
		t.Errorf("told %+v", told)
	}
}

func TestAClientThatAsksForTheDoorThroughATunnelIsServed(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.URL.Path) }))
	defer s.Close()
	w := open(t, func(w *world) { w.cfg.Routes = []Route{modelRoute(t, s.URL+"/v1")} })
	c := w.connect()
	io.WriteString(c, connect(Inside))
	r := bufio.NewReader(c)
	if line, _ := r.ReadString('\n'); !strings.HasPrefix(line, "HTTP/1.1 200 ") {
		t.Fatal(line)
	}
	r.ReadString('\n')
	for range 2 {
		io.WriteString(c, get("/model/models", Inside))
		if _, body := w.read(c, r); body != "/v1/models" {
			t.Errorf("got %q", body)
		}
	}
	io.WriteString(c, connect("example.com:443"))
	if resp, _ := w.read(c, r); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("a tunnel in a tunnel: %d", resp.StatusCode)
	}
}

func TestARouteMayLeadToThisMachineByName(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Host) }))
	defer s.Close()
	w := open(t, func(w *world) {
		route := modelRoute(t, fmt.Sprintf("http://localhost:%d", portOf(t, s.URL)))
		route.Header, route.Value = "", secret.Value{}
		w.cfg.Routes = []Route{route}
		w.cfg.Resolve = nil
	})
	if _, body := w.send(get("/model/models", Inside)); body != fmt.Sprintf("localhost:%d", portOf(t, s.URL)) {
		t.Errorf("got %q", body)
	}
}

func TestARouteWithoutAnAddressIsTold(t *testing.T) {
	w := open(t, func(w *world) {
		w.cfg.Routes = []Route{modelRoute(t, "http://nowhere.example")}
		w.cfg.Resolve = func(context.Context, string) ([]netip.Addr, error) { return nil, nil }
	})
	if resp, body := w.send(get("/model/models", Inside)); resp.StatusCode != http.StatusBadGateway || !strings.Contains(body, "its name was not found") {
		t.Errorf("%d %q", resp.StatusCode, body)
	}
	for base, want := range map[string]uint16{"http://a.example": 80, "https://a.example": 443, "http://a.example:8080": 8080} {
		if host, port := modelRoute(t, base).at(); host != "a.example" || port != want {
			t.Errorf("%s: %s %d", base, host, port)
		}
	}
}

func TestWhatIsWrittenWronglyIsNamed(t *testing.T) {
	good := modelRoute(t, "https://api.example.com/v1")
	change := func(f func(*Route)) Config {
		r := good
		f(&r)
		return Config{Routes: []Route{r}}
	}
	rule := func(r Rule) Config { return Config{Rules: []Rule{r}} }
	for name, c := range map[string]Config{
		"an address":           rule(Rule{Host: "10.0.0.1"}),
		"everything":           rule(Rule{Host: "*"}),
		"a whole top":          rule(Rule{Host: "*.com"}),
		"a star inside":        rule(Rule{Host: "a.*.example.org"}),
		"two stars":            rule(Rule{Host: "*.*.example.org"}),
		"a URL":                rule(Rule{Host: "https://example.org"}),
		"a port in the name":   rule(Rule{Host: "example.org:443"}),
		"port 0":               rule(Rule{Host: "example.org", Ports: []uint16{0}}),
		"a small method":       rule(Rule{Host: "example.org", Methods: []string{"get"}}),
		"TRACE":                rule(Rule{Host: "example.org", Methods: []string{"GET", "TRACE"}}),
		"CONNECT":              rule(Rule{Host: "example.org", Methods: []string{"CONNECT"}}),
		"a path without slash": rule(Rule{Host: "example.org", Paths: []string{"v1"}}),
		"a path with dots":     rule(Rule{Host: "example.org", Paths: []string{"/v1/../x"}}),
		"too many methods":     rule(Rule{Host: "example.org", Methods: slices.Repeat([]string{"GET"}, itemsMax+1)}),
		"too many ports":       rule(Rule{Host: "example.org", Ports: slices.Repeat([]uint16{1}, itemsMax+1)}),
		"too many paths":       rule(Rule{Host: "example.org", Paths: slices.Repeat([]string{"/"}, itemsMax+1)}),
		"too many rules":       {Rules: slices.Repeat([]Rule{{Host: "example.org"}}, rulesMax+1)},
		"too many routes":      {Routes: slices.Repeat([]Route{good}, routesMax+1)},
		"a route's methods":    change(func(r *Route) { r.Methods = slices.Repeat([]string{"GET"}, itemsMax+1) }),
		"a route's paths":      change(func(r *Route) { r.Paths = slices.Repeat([]string{"/"}, itemsMax+1) }),
		"a deletion in it":     change(func(r *Route) { r.Value = secret.Hold("a\x7fb") }),
		"an escape in a path":  rule(Rule{Host: "example.org", Paths: []string{"/%41"}}),
		"a route's works":      change(func(r *Route) { r.Only = slices.Repeat([]string{"GET /"}, itemsMax+1) }),
		"no name":              change(func(r *Route) { r.Name = "" }),
		"a long name":          change(func(r *Route) { r.Name = strings.Repeat("a", labelBytesMax+1) }),
		"a path with a query":  rule(Rule{Host: "example.org", Paths: []string{"/v1?x"}}),
		"no base":              change(func(r *Route) { r.Base = nil }),
		"another scheme":       change(func(r *Route) { r.Base = parseURL(t, "ftp://example.org") }),
		"a password in it":     change(func(r *Route) { r.Base = parseURL(t, "https://a:b@example.org") }),
		"a name with a slash":  change(func(r *Route) { r.Name = "a/b" }),
		"no methods":           change(func(r *Route) { r.Methods = nil }),
		"no paths":             change(func(r *Route) { r.Paths = nil }),
		"no credential":        change(func(r *Route) { r.Value = secret.Value{} }),
		"two lines":            change(func(r *Route) { r.Value = secret.Hold("a\r\nb") }),
		"another wire":         change(func(r *Route) { r.Wire = "telegraph" }),
		"two of a name":        {Routes: []Route{good, good}},
	} {
		_, err := New(c)
		if problem.KindOf(err) != problem.Usage || problem.Of(err).Next == "" || strings.Contains(fmt.Sprint(err), theKey) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := New(Config{Rules: append(Registries(), Rule{Host: "*.Example.ORG", Ports: []uint16{443, 80}, Paths: []string{"/"}}), Routes: []Route{good}}); err != nil {
		t.Error(err)
	}
	full := Rule{Host: "example.org", Ports: slices.Repeat([]uint16{1}, itemsMax), Methods: slices.Repeat([]string{"GET"}, itemsMax), Paths: slices.Repeat([]string{"/"}, itemsMax)}
	r := good
	r.Methods, r.Paths, r.Only, r.Name = full.Methods, full.Paths, slices.Repeat([]string{"GET /"}, itemsMax), strings.Repeat("a", labelBytesMax)
	routes := slices.Repeat([]Route{r}, routesMax)
	for i := range routes[1:] {
		routes[i].Name = fmt.Sprint("model-", i)
	}
	if _, err := New(Config{Rules: slices.Repeat([]Rule{full}, rulesMax), Routes: routes}); err != nil {
		t.Errorf("as much as may be: %v", err)
	}
	if _, err := (Rule{Host: "10.0.0.1"}).checked(); err == nil || !strings.Contains(err.Error(), "(sallyport.yaml)") {
		t.Errorf("a rule from nowhere else: %v", err)
	}
	if _, err := (Rule{Host: "10.0.0.1", From: "--egress"}).checked(); err == nil || !strings.Contains(err.Error(), "(--egress)") {
		t.Errorf("a rule of the command line: %v", err)
	}
}

// What is told of a request, in the log and to who asks why: the host as it was asked for, the rule, and where that is written.
func TestADecisionNamesHostAndRuleAndWhyNot(t *testing.T) {
	c := Config{Rules: triedRules(), Routes: []Route{modelRoute(t, "https://models.example.net:8443/v1")}}
	for i := range c.Rules {
		c.Rules[i].From = "rule " + c.Rules[i].Host
	}
	c.Rules = append(c.Rules, Rule{Host: "SHOUTED.example.com", From: "rule shouted"})
	c, err := c.checked()
	if err != nil {
		t.Fatal(err)
	}
	c.CA = &Authority{}
	for raw, want := range map[string]string{
		connect("example.com:443"):                            "tunnel example.com:443  example.com/rule example.com",
		connect("shouted.example.com:443"):                    "tunnel shouted.example.com:443  shouted.example.com/rule shouted",
		connect("api.example.com:443"):                        "inspect api.example.com:443  api.example.com/rule api.example.com",
		connect("example%2ecom:443"):                          "403 example%2ecom",
		connect("example.com:22"):                             "403 example.com: its rule does not open this port",
		connect(":443"):                                       "403 : it names no host",
		connect("example.com:0"):                              "400 example.com:0: its port is no number from 1 to 65535",
		connect("example.com"):                                "400 example.com: it names no port",
		get("http://example.com?x", "example.com"):            "forward example.com:80 / example.com/rule example.com",
		get("http:///a", "a"):                                 "400 : its Host header and its URL name two hosts",
		get("http://example.com:8080/", "example.com:8080"):   "403 example.com: its rule does not open this port",
		get("http://api.example.com/v2", "api.example.com"):   "403 api.example.com: its rule does not allow this method and path",
		get("http://other.example.com/", "other.example.com"): "403 other.example.com: no egress rule of this sandbox names it",
		get("https://example.com/", "example.com"):            "400 example.com: a whole URL can be asked for over http:// only",
		get("/model/models", Inside):                          "route models.example.net:8443 /models model/",
		get("/model", Inside):                                 "403 models.example.net: the route does not allow this method and path",
		"GET  HTTP/1.1\r\nHost: x\r\n\r\n":                    "400 : its first line is no request",
		"G(T / HTTP/1.1\r\nHost: x\r\n\r\n":                   "400 : its first line is no request",
		"GET / x HTTP/1.1\r\nHost: x\r\n\r\n":                 "400 : its first line is no request",
		"GET / HTTP/1.1\r\nHost: x\r\nA: \x01\r\n\r\n":        "400 : one of its headers has a control character",
		"GET / HTTP/1.1\r\nHost: x\r\nA: \x7f\r\n\r\n":        "400 : one of its headers has a control character",
		"GET / HTTP/1.1\r\nHost: x\r\nA\x7f: b\r\n\r\n":       "400 : one of its headers is malformed",
		"GET / HTTP/1.1\r\nHost: x\r\n\"A\": b\r\n\r\n":       "400 : one of its headers is malformed",
		"":                        "400 : its headers do not end in an empty line",
		"GET / HTTP/1.1\r\n\r\nx": "400 : its headers do not end in an empty line",
		"POST /model/responses HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n": "route models.example.net:8443 /responses model/",
		"GET /x HTTP/1.1\r\nHost: x\r\nA: a\tb\r\n\r\n":                                                      "404 : this address serves nothing by itself",
	} {
		a := c.decide([]byte(raw), nil)
		got := fmt.Sprintf("%s %s:%d %s %s/%s", a.Way, a.Host, a.Port, a.Path, a.Rule, a.From)
		if a.Status != 0 {
			got = fmt.Sprintf("%d %s: %s", a.Status, a.Host, a.Why)
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%q: %s, want %s", raw, got, want)
		}
	}
}

// turning is a credential that changes when it is refused.
type turning struct {
	now  string
	err  error
	told []string
}

func (c *turning) Present(context.Context) (secret.Value, map[string]string, error) {
	if c.err != nil {
		return secret.Value{}, nil, c.err
	}
	return secret.Hold("Bearer " + c.now), map[string]string{"Account-Id": "a1"}, nil
}

func (c *turning) Refused(_ context.Context, v secret.Value) error {
	c.told = append(c.told, v.Reveal())
	if c.err != nil {
		return c.err
	}
	c.now = "token-of-tomorrow"
	return nil
}

func TestACredentialThatChangesIsTakenAnewForEachRequest(t *testing.T) {
	good := "token-of-today"
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+good || r.Header.Get("Account-Id") != "a1" {
			w.WriteHeader(http.StatusUnauthorized)
		}
		fmt.Fprintf(w, "you sent %s", r.Header.Get("Authorization"))
	}))
	defer s.Close()
	own := &turning{now: "token-of-today"}
	var used int
	w := open(t, func(w *world) {
		route := modelRoute(t, s.URL)
		route.Value, route.Credential, route.Wire, route.Used = secret.Value{}, own, wireResponses, func(Usage) { used++ }
		w.cfg.Routes = []Route{route}
	})
	ask := func(status int, says string) {
		t.Helper()
		resp, body := w.send("POST /model/responses HTTP/1.1\r\nHost: " + Inside + "\r\nAccount-Id: mine\r\nContent-Length: 2\r\n\r\n{}")
		if resp.StatusCode != status || !strings.Contains(body, says) || strings.Contains(body, "token-of") {
			t.Errorf("%d %q", resp.StatusCode, body)
		}
		if again := resp.Header.Get("X-Should-Retry") == "true" && resp.Header.Get("Retry-After") == "1"; again != (status == http.StatusServiceUnavailable) {
			t.Errorf("%d: it may ask again: %t", status, again)
		}
	}
	ask(http.StatusOK, "you sent Bearer **************")
	good = "token-of-tomorrow"
	ask(http.StatusServiceUnavailable, "its login has just been renewed; ask again")
	ask(http.StatusOK, "you sent Bearer *****************")
	if !slices.Equal(own.told, []string{"Bearer token-of-today"}) || used != 2 {
		t.Errorf("told %q, counted %d", own.told, used)
	}

	own.err = problem.Errorf(problem.Unavailable, "codex login", "the login of codex has ended; log in again")
	ask(http.StatusUnauthorized, "the login of codex has ended; log in again")
	own.err, good = nil, "another"
	own.now = "x"
	ask(http.StatusServiceUnavailable, "ask again")
	for _, d := range w.decisions() {
		if strings.Contains(fmt.Sprintf("%+v", d), "token-of") || (d.Verdict == Failed) == (d.Why == "") {
			t.Errorf("%+v", d)
		}
	}
}
