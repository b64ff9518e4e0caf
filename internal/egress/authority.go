package egress

// Authority signs what an inspected host shows to the inside. It lives in memory, as long as its daemon.
type Authority struct{}
