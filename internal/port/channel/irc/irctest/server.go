// Package irctest has real IRC servers for tests, and people who are connected to them.
package irctest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sallyport/internal/base/disk/disktest"
)

// Server is a real server, and the services beside it, in a folder of its own.
type Server struct {
	Addr     string // where people connect
	Link     string // port where servers connect
	Accounts bool   // people can log in
	Services *exec.Cmd

	dir string
}

// taken are the ports that were given to a server of these tests.
var taken sync.Map

// Ports returns so many that nobody listens on now. They lie below those that the kernel gives to clients, who could take one before the
// server does.
func Ports(t *testing.T, n int) (all []string) {
	t.Helper()
	for tries := 0; len(all) < n; tries++ {
		if tries > 1000 {
			t.Fatal("no port is free")
		}
		port := strconv.Itoa(10000 + rand.IntN(20000))
		if _, is := taken.LoadOrStore(port, true); is {
			continue
		}
		if l, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			_ = l.Close()
			all = append(all, port)
		}
	}
	return all
}

// Tool returns the path of a program, or skips.
func Tool(t *testing.T, name string) string {
	t.Helper()
	for _, path := range []string{name, "/usr/sbin/" + name} {
		if found, err := exec.LookPath(path); err == nil {
			return found
		}
	}
	t.Skipf("%s is not installed: apt-get install %s", name, name)
	return ""
}

// folder is one that the servers may use: they refuse to run as root.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "irc")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for name, text := range files {
		disktest.Put(t, filepath.Join(dir, name), strings.ReplaceAll(text, "DIR", dir), 0o600)
	}
	if os.Getuid() == 0 {
		for _, path := range append([]string{dir}, names(files, dir)...) {
			if err := os.Chown(path, nobody, nobody); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

const nobody = 65534

func names(files map[string]string, dir string) (all []string) {
	for name := range files {
		all = append(all, filepath.Join(dir, name))
	}
	return all
}

// Run starts a server, which ends with the test.
func Run(t *testing.T, dir, program string, args ...string) *exec.Cmd {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = dir, &out, &out, time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if os.Getuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		Stop(cmd)
		if t.Failed() {
			t.Logf("the end of what %s says:\n%s", program, out.Bytes()[max(0, out.Len()-1500):])
		}
	})
	return cmd
}

func Stop(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// reachable waits until somebody listens.
func reachable(t *testing.T, addr string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		if c, err := net.Dial("tcp", addr); err == nil {
			_ = c.Close()
			return
		}
		time.Sleep(20 * time.Millisecond) // a real server starts in its own time
	}
	t.Fatalf("nobody listens on %s", addr)
}

const inspircdConf = `
<server name="SERVER.test" description="x" network="Test" id="ID">
<bind address="127.0.0.1" port="PEOPLE" type="clients">
<bind address="127.0.0.1" port="LINK" type="servers">
<connect name="main" allow="*" threshold="100000" commandrate="10000000" fakelag="no" timeout="60" pingfreq="120" hardsendq="10M" softsendq="10M" recvq="1M" localmax="1000" globalmax="1000" resolvehostnames="no">
<path configdir="DIR" datadir="DIR" logdir="DIR" moduledir="/usr/lib/inspircd/modules" runtimedir="DIR">
<options casemapping="ascii" prefixquit="Quit: ">
<performance somaxconn="128" softlimit="1000">
<admin name="x" nick="x" email="x@h.example">
<dns server="127.0.0.1" timeout="1">
<module name="cap"><module name="ircv3"><module name="ircv3_accounttag"><module name="ircv3_batch"><module name="ircv3_capnotify"><module name="ircv3_ctctags">
<module name="ircv3_echomessage"><module name="ircv3_msgid"><module name="ircv3_servertime"><module name="services_account"><module name="sasl">
<module name="spanningtree"><module name="hidechans"><module name="chanhistory"><module name="botmode"><module name="svshold"><module name="chghost"><module name="chgident">
<chanhistory maxlines="50" prefixmsg="yes" bots="yes">
<sasl target="services.test">
<link name="services.test" ipaddr="127.0.0.1" port="LINK" allowmask="127.0.0.1/32" sendpass="pw" recvpass="pw" timeout="10">
<uline server="services.test">
<link name="OTHER.test" ipaddr="127.0.0.1" port="OTHERLINK" allowmask="127.0.0.1/32" sendpass="pw" recvpass="pw" timeout="10">
<class name="all" commands="*" usermodes="*" chanmodes="*" privs="*">
<type name="op" classes="all">
<oper name="root" password="pw" host="*@*" type="op">
`

// Inspircd starts one, which may be linked with another one.
func Inspircd(t *testing.T, name, id, people, link, other, otherLink string) *Server {
	t.Helper()
	program := Tool(t, "inspircd")
	conf := strings.NewReplacer("SERVER", name, "ID", id, "PEOPLE", people, "OTHERLINK", otherLink, "OTHER", other, "LINK", link).Replace(inspircdConf)
	dir := folder(t, map[string]string{"ircd.conf": conf})
	s := &Server{Addr: "127.0.0.1:" + people, Link: link, dir: dir, Accounts: true}
	Run(t, dir, program, "--config", filepath.Join(dir, "ircd.conf"), "--nofork", "--nopid", "--nolog")
	reachable(t, s.Addr)
	return s
}

const anopeConf = `
uplink { host = "127.0.0.1"; ipv6 = no; ssl = no; port = LINK; password = "pw" }
serverinfo { name = "services.test"; description = "s"; localhost = ""; id = "00A"; pid = "DIR/pid"; motd = "motd" }
module { name = "inspircd3"; use_server_side_mlock = yes; use_server_side_topiclock = yes }
networkinfo { networkname = "Test"; nicklen = 30; userlen = 10; hostlen = 64; chanlen = 64; modelistsize = 100; vhost_chars = "abc"; nick_chars = "" }
options { casemap = "ascii"; strictpasswords = no; badpasslimit = 0; badpasstimeout = 1h; updatetimeout = 5m; expiretimeout = 30m; readtimeout = 5s; warningtimeout = 4h; timeoutcheck = 3s; retrywait = 1s; hideprivilegedcommands = yes; seed = 7 }
service { nick = "NickServ"; user = "services"; host = "services.test"; gecos = "n" }
module { name = "nickserv"; client = "NickServ"; forceemail = no; confirmemailchanges = no; defaults = "ns_private"; regdelay = 0s; expire = 0; modeonid = yes; killquick = 20s; kill = 60s; enforceruser = "enforcer"; enforcerhost = "services.test"; releasetimeout = 1m; guestnickprefix = "Guest"; nonicknameownership = yes }
module { name = "ns_register"; registration = "none"; nickregdelay = 0s }
command { service = "NickServ"; name = "REGISTER"; command = "nickserv/register"; }
module { name = "ns_identify" }
command { service = "NickServ"; name = "IDENTIFY"; command = "nickserv/identify"; }
module { name = "enc_none" }
module { name = "m_sasl" }
`

// Serve starts the services, which keep no accounts when they end.
func (s *Server) Serve(t *testing.T) {
	t.Helper()
	program := Tool(t, "anope")
	dir := folder(t, map[string]string{"services.conf": strings.ReplaceAll(anopeConf, "LINK", s.Link), "motd": ""})
	s.Services = Run(t, dir, program, "--nofork", "--nothird", "--config=services.conf", "--confdir="+dir, "--dbdir="+dir, "--logdir="+
		dir, "--modulesdir=/usr/lib/anope", "--localedir="+dir)
}

// Network is one server of inspircd, with services.
func Network(t *testing.T) *Server {
	t.Helper()
	Tool(t, "inspircd")
	Tool(t, "anope")
	p := Ports(t, 3)
	s := Inspircd(t, "a", "1AA", p[0], p[1], "b", p[2])
	s.Serve(t)
	return s
}

// Ngircd starts one; it has no services.
func Ngircd(t *testing.T) *Server {
	t.Helper()
	program := Tool(t, "ngircd")
	people := Ports(t, 1)[0]
	conf := fmt.Sprintf("[Global]\nName = ng.test\nInfo = x\nListen = 127.0.0.1\nPorts = %s\nAdminInfo1 = x\n[Limits]\nMaxPenaltyTime = 0\nMaxConnectionsIP = 0\nMaxJoins = 0\n[Options]\nDNS = no\nIdent = no\nPAM = no\n[Operator]\nName = root\nPassword = pw\n", people)
	dir := folder(t, map[string]string{"ngircd.conf": conf})
	Run(t, dir, program, "-n", "-f", filepath.Join(dir, "ngircd.conf"))
	s := &Server{Addr: "127.0.0.1:" + people, dir: dir}
	reachable(t, s.Addr)
	return s
}
