// Package conversion says what git does to the bytes of a file between its store and a checkout: what a filter, the ends of
// lines, a keyword or an encoding make of them.
//
// A change is judged, shown and landed as the bytes that git stores. At a path whose checkout holds other bytes it can not be
// landed so: the file of the person would be exchanged for one that their git would not have written. So a change to such a
// path is refused by name (Set.Judge), and all else in the repository can be worked on.
//
// Attributes are read as git reads them (attr.c, wildmatch.c, convert.c), in process: git could be told to take them from a
// tree only from version 2.40 on, and nothing that an agent wrote is to be given to a git that also reads the
// configuration of a person. No filter is ever run. A filter counts also where nobody has configured it, because it is
// configured elsewhere. What cannot be told for sure is an error, and nothing lands.
package conversion
