package socket

import (
	"net"
	"slices"
	"sync"

	"sallyport/internal/door/peer"
)

// crowd is a listener that closes what one user opens too much of. Once all places are taken, who has the most of them makes room for who has
// fewer: a few users keep nobody away.
type crowd struct {
	net.Listener
	mu  sync.Mutex
	of  map[int][]*guest // by uid, oldest first
	all int
}

func (c *crowd) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if uid, ok := peer.UID(conn); ok {
			g := &guest{UnixConn: conn.(*net.UnixConn), crowd: c, uid: uid}
			out, in := c.enter(g)
			if out != nil {
				_ = out.Close()
			}
			if in {
				return g, nil
			}
		}
		_ = conn.Close() // they have more than they need
	}
}

// enter counts a connection, and returns the one that makes room for it, which is to be closed; false if there is no place for it.
func (c *crowd) enter(g *guest) (out *guest, in bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	own := len(c.of[g.uid])
	if own >= userAtOnce {
		return nil, false
	}
	if c.all >= usersAtOnce {
		for _, theirs := range c.of {
			if len(theirs) >= own+2 && (out == nil || len(theirs) > len(c.of[out.uid])) {
				out = theirs[0]
			}
		}
		if out == nil {
			return nil, false
		}
		c.forget(out)
	}
	c.of[g.uid] = append(c.of[g.uid], g)
	c.all++
	return out, true
}

// leave counts a connection no more.
func (c *crowd) leave(g *guest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget(g)
}

func (c *crowd) forget(g *guest) {
	at := slices.Index(c.of[g.uid], g)
	if at < 0 {
		return // it has made room, or was closed before
	}
	c.all--
	if c.of[g.uid] = slices.Delete(c.of[g.uid], at, at+1); len(c.of[g.uid]) == 0 {
		delete(c.of, g.uid)
	}
}

// guest is a connection that is counted until it is closed.
type guest struct {
	*net.UnixConn
	crowd *crowd
	uid   int
}

func (g *guest) Close() error {
	g.crowd.leave(g)
	return g.UnixConn.Close()
}
