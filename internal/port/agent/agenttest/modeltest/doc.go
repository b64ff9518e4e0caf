// Package modeltest is a model's endpoint for tests: a real HTTP server on loopback that speaks the four wires, in streams and
// not, answers from a script, and remembers every request.
//
// A script is a list of Turns. Each request that offers tools takes the next turn of its conversation; a conversation is told by
// words that a person's text has (Server.Converse), and what has none of them belongs to the script that Start was given. What comes
// after the last turn is answered with Over. Requests without tools, which agents make for titles and the like, take no turn
// unless Server.TakeAll was called.
//
// An answer is asked for by meaning where it can be: Shell, Write, Read and Edit become a call of whatever tool the agent offers for
// that, with the arguments that this tool's own schema names. So one script serves every agent.
package modeltest
