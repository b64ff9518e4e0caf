// Package login uses the login that an agent's own program keeps of itself on this machine, outside of every sandbox.
//
// It is read from the program's own file each time that it is used, so that what the program does with it counts at once: another
// login, a renewal, a logout. A token that is near its end, or that its endpoint has refused, is renewed as the program would renew it,
// and what comes back is written into the same file. One renewal runs at a time; the folder's lock keeps the daemons of other homes
// out, and the program itself by comparison: what it has written meanwhile stays.
//
// Most endpoints take a token for a renewal once. So the answer is on the disk under a name of its own, made from the token that it
// replaces, before it takes the place of the file: whoever finds it there after a crash puts it into its place.
package login
