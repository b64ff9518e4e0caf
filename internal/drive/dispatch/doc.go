// Package dispatch carries what is said to a group to its agent, and what the agent answers back.
//
// The row is the work. A message that was accepted is a committed row; a chat that a message waits for which wakes is due; what a turn
// said and that its messages are answered is one transaction. So whatever dies between any two instructions, the next daemon finds in
// the rows what is still to be done (CH-030 to CH-034). A chat is claimed with a fence: what a session says that lost its claim counts
// no more.
//
// A chat has at most one session, and a goroutine of its own, a worker, from when a message wakes it until its place is needed for
// another. No chat waits for another's turn.
package dispatch
