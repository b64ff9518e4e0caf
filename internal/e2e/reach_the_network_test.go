package e2e_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/internal/daemon"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

// elsewhere names the variable that has a daemon find every host at one address of this machine.
const elsewhere = "SALLYPORT_TEST_ELSEWHERE"

func allAt(addr string) daemon.Outside {
	return daemon.Outside{
		Resolve: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
		},
		Dial: func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", addr)
		},
	}
}

// fetch asks for a page of a host that is listed and for one that is not, as any program would, until its gate opens.
func fetch(args []string) error {
	get := func(url string) string {
		resp, err := http.Get(url)
		if err != nil {
			return err.Error()
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			return err.Error()
		}
		return fmt.Sprintf("%d %.200s", resp.StatusCode, body)
	}
	for {
		last := opened(args[0])
		page := get("http://listed.example.org/page")
		if err := put("page.txt", page); err != nil {
			return err
		}
		fmt.Printf("listed: %s\nother: %s\ndirectly: %v\n", page, get("http://other.example.org/page"), reach(args[1]))
		if last {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// reach tries an address without the way out.
func reach(addr string) error {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err == nil {
		conn.Close()
	}
	return err
}

// TestAnAgentReachesWhatIsListedAndNothingElseAlsoAfterItsDaemonDied is the whole way: a program that knows HTTP_PROXY, the relay, the
// socket, the door, and what is kept of it. The host's end dies and comes back.
func TestAnAgentReachesWhatIsListedAndNothingElseAlsoAfterItsDaemonDied(t *testing.T) {
	if !apart(t) {
		return
	}
	w := newWorld(t)
	w.configure(t, map[string]string{"sallyport.yaml": "egress: [listed.example.org]\n"})
	var mu sync.Mutex
	heard := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		mu.Lock()
		heard[r.Host+r.URL.Path]++
		mu.Unlock()
		_, _ = io.WriteString(out, "served")
	}))
	defer server.Close()
	addr := server.Listener.Addr().String()
	if err := reach(addr); err != nil {
		t.Fatalf("the control does not reach it: %v", err)
	}
	begin := func() *doomed {
		return w.begin(t, []string{w.bin, "daemon", "run", "--home", w.home}, elsewhere+"="+addr)
	}
	first := begin()
	c := first.client(t, w.place)
	gate, open := w.gate(t)
	chg := w.sendTo(t, c, api.Run{Shares: []string{gate}}, "fetch", gate, addr)
	asked := func(c *client.Client) map[string]int64 {
		d, err := client.Call(t.Context(), c, api.ChangeShow, chg)
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]int64{}
		for _, a := range d.Asked {
			all[a.Verdict+" "+a.Host] += a.Count
		}
		return all
	}
	await(t, "the agent to ask", func() (bool, error) { return asked(c)["refused other.example.org"] > 0, nil })
	before := asked(c)
	if n := len(w.ways(t)); n != 1 {
		t.Errorf("%d ways out are open", n)
	}
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	first.end(t, w.place)
	second := begin()
	c = second.client(t, w.place)
	open()
	at := rest(t, c, chg, nil)
	after := asked(c)
	if at.State != api.AwaitingApproval || after["allowed listed.example.org"] <= before["allowed listed.example.org"] || after["refused other.example.org"] <= before["refused other.example.org"] || len(after) != 2 {
		t.Errorf("%s (%s): %v, then %v\n%s", at.State, at.Reason, before, after, w.said())
	}
	said := transcript(t, c, chg)
	for _, want := range []string{"listed: 200 served", "other: 403 sallyport: GET other.example.org is refused", "directly: dial tcp " + addr} {
		if !strings.Contains(said, want) {
			t.Errorf("it did not say %q: %.2000s", want, said)
		}
	}
	if page := git(t, w.host(t), "cat-file", "blob", "refs/sallyport/"+chg+"/valid:page.txt"); page != "200 served" {
		t.Errorf("the page is %q", page)
	}
	mu.Lock()
	if len(heard) != 1 || heard["listed.example.org/page"] == 0 {
		t.Errorf("the server was asked %v", heard)
	}
	mu.Unlock()
	if left := w.ways(t); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	w.stop(t, c)
}

// ways are the sockets of ways out that are there.
func (p *place) ways(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "sallyport", "*", "out-*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}
