// Package channels speaks with platforms: it runs the session of each channel, makes of what is said there what routing says, and delivers
// what leaves. A platform that is down holds up nobody else.
//
// An event is one transaction: what came in, how far the platform has come, and the messages, the question or nothing that became of it.
// Only then the platform hears that it was taken. What leaves is a row as well: it is sent until it has arrived, or never will.
package channels
