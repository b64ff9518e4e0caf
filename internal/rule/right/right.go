// Package right says who may decide about a change of what agents run, from what the change reaches.
package right

// Class is what a change of the home reaches (SM-076). It decides who approves it, and nothing of what an agent may write (SM-075).
type Class string

const (
	Group    Class = "group"    // one group's own files
	Host     Class = "host"     // what runs every group, another group, or what no group has
	Combined Class = "combined" // the host, and what one group runs
)
