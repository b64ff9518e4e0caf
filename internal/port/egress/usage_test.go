package egress

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"sallyport/internal/port/agent/agenttest/modeltest"
)

// asks are requests for a model's work by wire; %t is whether it streams.
var asks = map[string]struct{ base, stream, whole, body string }{
	wireResponses: {"/v1", "/responses", "/responses", `{"model":"m1","stream":%t,"tools":[{"type":"function","name":"x"}],"input":[{"type":"message","role":"user","content":"hello"}]}`},
	wireChat:      {"/v1", "/chat/completions", "/chat/completions", `{"stream_options":{"include_usage":true},"model":"m1","stream":%t,"tools":[{"type":"function","function":{"name":"x"}}],"messages":[{"role":"user","content":"hello"}]}`},
	wireMessages:  {"/v1", "/messages", "/messages", `{"model":"m1","stream":%t,"tools":[{"name":"x"}],"messages":[{"role":"user","content":"hello"}]}`},
	wireGemini:    {"/v1beta", "/models/m1:streamGenerateContent?alt=sse", "/models/m1:generateContent", `{"x":%t,"tools":[{"functionDeclarations":[{"name":"x"}]}],"contents":[{"role":"user","parts":[{"text":"hello"}]}]}`},
}

// metered is a door with a route to a model that speaks a wire, and the usage that it told.
func metered(t *testing.T, wire, base string) (*world, <-chan Usage) {
	t.Helper()
	used := make(chan Usage, 10)
	return open(t, func(w *world) {
		route := modelRoute(t, base)
		route.Wire, route.Used = wire, func(u Usage) { used <- u }
		w.cfg.Routes = []Route{route}
	}), used
}

// post asks and returns what came, also of an answer that broke off.
func (w *world) post(path, body string) (int, string) {
	w.t.Helper()
	resp, err := w.direct().Post("http://"+Inside+"/model"+path, "application/json", strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b)
}

func TestUsageIsWhatTheEndpointSays(t *testing.T) {
	for wire, ask := range asks {
		for _, stream := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s stream=%t", wire, stream), func(t *testing.T) {
				model := modeltest.Start(t, modeltest.Turn{Text: "I have done it.", Usage: modeltest.Usage{Input: 11, Cached: 22, Output: 33}})
				w, used := metered(t, wire, model.URL+ask.base)
				path := ask.whole
				if stream {
					path = ask.stream
				}
				status, text := w.post(path, fmt.Sprintf(ask.body, stream))
				if status != http.StatusOK || !strings.Contains(text, "done it") {
					t.Fatalf("%d %s", status, text)
				}
				w.stop()
				if u := <-used; u.Input != 11 || u.Cached != 22 || u.Output != 33 || u.Unknown || u.Model == "" || u.At.IsZero() {
					t.Errorf("used %+v\n%s", u, text)
				}
				if len(used) > 0 {
					t.Errorf("it was told twice: %+v", <-used)
				}
			})
		}
	}
}

func TestUsageIsToldBeforeTheAgentReadsOfIt(t *testing.T) {
	hold := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, `data: {"type":"response.completed","response":{"model":"m","usage":{"input_tokens":5,"output_tokens":1}}}`+"\n\n")
		w.(http.Flusher).Flush()
		<-hold
	}))
	defer s.Close()
	defer close(hold)
	w, used := metered(t, wireResponses, s.URL)
	resp, err := w.direct().Post("http://"+Inside+"/model/responses", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := resp.Body.Read(make([]byte, 1)); err != nil || len(used) != 1 {
		t.Errorf("the agent has read of it, and it was told %d times; %v", len(used), err)
	}
}

func TestUsageThatIsNotSaidIsEstimated(t *testing.T) {
	for wire, ask := range asks {
		for name, turn := range map[string]modeltest.Turn{
			"nothing said": {Text: strings.Repeat("words ", 100), NoUsage: true},
			"cut off":      {Text: strings.Repeat("words ", 100), Cut: true},
		} {
			t.Run(wire+" "+name, func(t *testing.T) {
				model := modeltest.Start(t, turn)
				w, used := metered(t, wire, model.URL+ask.base)
				body := fmt.Sprintf(ask.body, true)
				w.post(ask.stream, body)
				w.stop()
				if u := <-used; !u.Unknown || u.Model == "" || u.Input < 1 || turn.NoUsage && u.Input != int64(len(body)/bytesPerToken) || u.Output < 1 || u.Output > 1000 {
					t.Errorf("used %+v", u)
				}
			})
		}
	}
}

func TestWhatTheModelDidNotDoIsNotCounted(t *testing.T) {
	model := modeltest.Start(t, modeltest.Fail(http.StatusTooManyRequests))
	w, used := metered(t, wireResponses, model.URL+"/v1")
	if status, _ := w.post("/responses", fmt.Sprintf(asks[wireResponses].body, true)); status != http.StatusTooManyRequests {
		t.Errorf("status %d", status)
	}
	w.send(get("/model/models", Inside))
	w.stop()
	if len(used) > 0 {
		t.Errorf("told %+v", <-used)
	}
}

// packed is a server whose answers are packed although nobody asked for that.
func packed(t *testing.T, kind, text string) *httptest.Server {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, text)
	z.Close()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Content-Encoding", "gzip")
		w.Write(b.Bytes())
	}))
	t.Cleanup(s.Close)
	return s
}

func TestAPackedAnswerIsCountedAndUnpackedOnItsWay(t *testing.T) {
	text := `{"model":"m2","usage":{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":4}}}`
	for kind, said := range map[string]string{"application/json": text, "text/event-stream; charset=utf-8": "data: {}\r\n\r\ndata: " + text + "\r\n\r\ndata: [DONE]\r\n\r\n"} {
		s := packed(t, kind, said)
		w, used := metered(t, wireChat, s.URL)
		resp, body := w.send("POST /model/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
		if resp.Header.Get("Content-Encoding") != "" || body != said {
			t.Errorf("it came as %q %v", body, resp.Header)
		}
		if u := <-used; u.Input != 6 || u.Cached != 4 || u.Output != 5 || u.Model != "m2" || u.Unknown {
			t.Errorf("used %+v", u)
		}
		w.stop()
	}
}

// meterOf reads a whole answer and returns what was told of it.
func meterOf(wire, path, kind, asked string, pieces ...string) (told []Usage) {
	r := &Route{Wire: wire, Used: func(u Usage) { told = append(told, u) }}
	m := newMeter(Answer{Route: r, Method: "POST", Path: path})
	m.asked([]byte(asked))
	m.answered(&http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {kind}}})
	for _, p := range pieces {
		m.Write([]byte(p))
	}
	m.close(true)
	m.close(true)
	return told
}

func TestOddAnswersAreCountedAsFarAsTheyCanBe(t *testing.T) {
	const stream, whole = "text/event-stream", "application/json"
	start := `data: {"type":"message_start","message":{"model":"c","usage":{"input_tokens":5,"cache_creation_input_tokens":6,"cache_read_input_tokens":7,"output_tokens":1}}}` + "\n\n"
	big := strings.Repeat("x", eventBytesMax)
	for _, c := range []struct {
		name, wire, path, kind, asked string
		pieces                        []string
		want                          Usage
	}{
		{"cut in the middle of a word", wireMessages, "/messages", stream, "", []string{start[:40], start[40:], `data: {"type":"message_delta","usage":{"output_`, `tokens":9}}` + "\n"}, Usage{Model: "c", Input: 11, Cached: 7, Output: 9}},
		{"only the beginning", wireMessages, "/messages", stream, "", []string{start, `data: {"type":"content_block_delta","delta":{"type":"text_delta","text":"` + strings.Repeat("a", 400) + `"}}` + "\n"}, Usage{Model: "c", Input: 11, Cached: 7, Output: 100, Unknown: true}},
		{"numbers with a point, texts for numbers", wireChat, "/chat/completions", whole, "", []string{`{"model":5,"usage":{"prompt_tokens":10.0,"completion_tokens":"7","prompt_tokens_details":null}}`}, Usage{Input: 10}},
		{"less than nothing, and too much", wireChat, "/chat/completions", whole, "", []string{`{"model":"m","usage":{"prompt_tokens":-5,"completion_tokens":1e300}}`}, Usage{Model: "m", Output: tokensMax}},
		{"more cached than there is", wireResponses, "/responses", whole, "", []string{`{"model":"m","usage":{"input_tokens":5,"input_tokens_details":{"cached_tokens":50},"output_tokens":1}}`}, Usage{Model: "m", Cached: 5, Output: 1}},
		{"a response that failed", wireResponses, "/responses", stream, "", []string{`data: {"type":"response.failed","response":{"model":"m","usage":{"input_tokens":5,"output_tokens":1}}}` + "\n"}, Usage{Model: "m", Input: 5, Output: 1}},
		{"usage that is null", wireChat, "/chat/completions", stream, `{"messages":[{"model":"no"}],"model":"asked"}`, []string{`data: {"choices":[{"delta":{"content":"abcdefgh"}}],"usage":null}` + "\n", "data: [DONE]\n"}, Usage{Model: "asked", Input: 11, Output: 2, Unknown: true}},
		{"counted as it goes", wireChat, "/chat/completions", stream, "", []string{`data: {"model":"m","usage":{"prompt_tokens":9,"completion_tokens":1}}` + "\n\n", `data: {"model":"m","usage":{"prompt_tokens":9,"completion_tokens":500}}` + "\n\n", "data: [DONE]\n\n"}, Usage{Model: "m", Input: 9, Output: 500}},
		{"counted twice over", wireMessages, "/messages", stream, "", []string{start, `data: {"type":"message_delta","usage":{"output_tokens":2}}` + "\n", `data: {"type":"message_delta","usage":{"output_tokens":300}}` + "\n", `data: {"type":"message_stop"}` + "\n"}, Usage{Model: "c", Input: 11, Cached: 7, Output: 300}},
		{"nothing at its beginning", wireResponses, "/responses", stream, "", []string{`data: {"type":"response.created","response":{"model":"m","usage":{"input_tokens":0,"output_tokens":0}}}` + "\n", `data: {"type":"response.completed","response":{"model":"m","usage":{"input_tokens":5,"output_tokens":70}}}` + "\n"}, Usage{Model: "m", Input: 5, Output: 70}},
		{"nothing at its beginning, and no end", wireResponses, "/responses", stream, strings.Repeat("a", 400), []string{`data: {"type":"response.created","response":{"model":"m","usage":{"input_tokens":0,"output_tokens":0}}}` + "\n", `data: {"type":"response.output_text.delta","delta":"` + strings.Repeat("a", 400) + `"}` + "\n"}, Usage{Model: "m", Input: 100, Output: 100, Unknown: true}},
		{"usage of another wire", wireGemini, "/models/g:generateContent", whole, "", []string{`{"usage":{"prompt_tokens":10}}`}, Usage{Model: "g", Input: 1, Output: 7, Unknown: true}},
		{"and the other way", wireChat, "/chat/completions", whole, "", []string{`{"usageMetadata":{"promptTokenCount":10}}`}, Usage{Input: 1, Output: 10, Unknown: true}},
		{"a list of answers", wireGemini, "/models/g:streamGenerateContent", whole, "", []string{`[{"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":1}},`, `{"modelVersion":"g2","usageMetadata":{"promptTokenCount":10,"cachedContentTokenCount":4,"toolUsePromptTokenCount":2,"candidatesTokenCount":3,"thoughtsTokenCount":4}}]`}, Usage{Model: "g2", Input: 8, Cached: 4, Output: 7}},
		{"no JSON", wireChat, "/chat/completions", whole, strings.Repeat("a", 400), []string{"<html>" + strings.Repeat("b", 394)}, Usage{Input: 100, Output: 100, Unknown: true}},
		{"an event without end", wireResponses, "/responses", stream, "", []string{`data: {"a":"` + big, `","response":{"model":"big","usage":{"input_tokens":9,"output_tokens":9}}}` + "\n", `data: {"type":"response.completed","response":{"model":"m","usage":{"input_tokens":5,"output_tokens":1}}}` + "\n"}, Usage{Model: "m", Input: 5, Output: 1}},
		{"an answer without end", wireChat, "/chat/completions", whole, "", []string{`{"a":"` + big, `","usage":{"prompt_tokens":5,"completion_tokens":1}}`}, Usage{Input: 1, Output: int64(eventBytesMax+58) / 4, Unknown: true}},
		{"an answer as long as is kept", wireChat, "/chat/completions", whole, "", []string{padded(eventBytesMax, `{"usage":{"prompt_tokens":5,"completion_tokens":1}`)}, Usage{Input: 5, Output: 1}},
		{"an event as long as is taken apart", wireChat, "/chat/completions", stream, "", []string{"data:" + padded(wordsBytesMax, `{"choices":[{"delta":{"content":"abcdefgh"}}]`) + "\n"}, Usage{Input: 1, Output: 2, Unknown: true}},
		{"a stream that goes on after its end", wireChat, "/chat/completions", stream, "", []string{`data: {"model":"m","usage":{"prompt_tokens":9,"completion_tokens":1}}` + "\ndata: [DONE]\n", "data: [DONE]\n"}, Usage{Model: "m", Input: 9, Output: 1}},
		{"an event without words", wireGemini, "/models/g:streamGenerateContent", stream, "", []string{`data: {"usageMetadata":{"promptTokenCount":10}}` + "\n"}, Usage{Model: "g", Input: 10, Output: 1, Unknown: true}},
		{"as much cached as not", wireMessages, "/messages", stream, "", []string{`data: {"type":"message_start","message":{"model":"c","usage":{"input_tokens":5,"cache_read_input_tokens":5,"output_tokens":1}}}` + "\n"}, Usage{Model: "c", Input: 5, Cached: 5, Output: 1, Unknown: true}},
		{"deep", wireChat, "/chat/completions", whole, strings.Repeat("[", 10_000), []string{strings.Repeat("[", 20_000)}, Usage{Input: 2500, Output: 5000, Unknown: true}},
	} {
		var told []Usage
		synctest.Test(t, func(*testing.T) { told = meterOf(c.wire, c.path, c.kind, c.asked, c.pieces...) }) // a model's time counts, too
		if len(told) != 1 {
			t.Errorf("%s: told %d times", c.name, len(told))
			continue
		}
		got := told[0]
		got.At = c.want.At
		if got != c.want {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
	if told := meterOf(wireMessages, "/messages/count_tokens", whole, "{}", `{"input_tokens":5}`); len(told) != 0 {
		t.Errorf("counting tokens was counted: %+v", told)
	}
}

// padded is an object of so many bytes that begins like this.
func padded(size int, begins string) string {
	begins += `,"pad":"`
	return begins + strings.Repeat("x", size-len(begins)-len(`"}`)) + `"}`
}

func TestOfAQuestionTheBeginningIsKept(t *testing.T) {
	m := &meter{}
	for range 3 {
		m.asked(make([]byte, askedBytesMax/2+1))
	}
	if len(m.asks) != askedBytesMax || m.in != 3*(askedBytesMax/2+1) {
		t.Errorf("%d bytes of %d are kept", len(m.asks), m.in)
	}
}

func FuzzNoAnswerBreaksTheMeter(f *testing.F) {
	f.Add(`data: {"response":{"response":{"message":{"usage":{}}}}}`+"\n", `{"usageMetadata":null}`)
	f.Add("data:{\"usage\":{\"prompt_tokens\":1e999}}\r\n", "[]")
	f.Fuzz(func(t *testing.T, a, b string) {
		for wire := range asks {
			for _, kind := range []string{"text/event-stream", "application/json"} {
				for _, u := range meterOf(wire, "/responses", kind, a, a, b) {
					if u.Input < 0 || u.Cached < 0 || u.Output < 0 || u.Unknown && (u.Output < 1 || u.Input+u.Cached < 1) {
						t.Fatalf("used %+v", u)
					}
				}
			}
		}
	})
}
