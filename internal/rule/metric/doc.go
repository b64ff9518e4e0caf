// Package metric measures the host: how long things take, how often they fail, how much
// they hold, and which of that is over what SV-100 to SV-104 allow.
//
// There is one Set per daemon. Every method works on a nil Set, so that who measures need
// not ask whether anybody counts. Nothing runs here by itself: a figure is judged when it
// is recorded, and again when somebody reads. What a scrape carries are numbers and words
// of this package; ids, paths and texts never leave it that way.
package metric
