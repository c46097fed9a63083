// Package config turns defaults, config.yaml, the environment and flags into
// one typed, validated value. [Load] is the only way in: validate, run and
// reload all take it, so that none accepts what another refuses.
//
// The structs are the schema. Their tags give each key's name, default,
// limits and unit, and everything else is derived from them: which keys are
// unknown, which variables exist, what [Keys] lists and what the manual must
// say. The tags are
//
//	key      the key's name; "<name>" and "<type>-observer" stand for any
//	default  the text of the default
//	shown    how the manual puts a default that is not a constant
//	required that it must be written
//	min, max limits of a number or a duration, inclusive
//	oneof    the accepted words, separated by "|"; "<sinks>" for the kinds of sinks
//	schemes  those of a URL, separated by "|"
//	kinds    the family of the kinds of a section, at its settings
//	entry    what an entry of a map is called in messages
//	unit     what a number counts, or what a text is; "SQL" takes no ${NAME}
//
// A field is a text, a number, a switch, a duration, a type of package field, a list or a
// map of these, or a section: a struct, or a list or map of structs.
//
// What a kind of sink has of its own are such structs too, which [Kinds] bring in. In them
// a text may have the unit "file name", and then the tags
//
//	holds    "certificate" or "key": the file is read, and others should not read a key
//	written  that the file is written to: the right to do so is checked before a node starts
//
// A file is read in three steps. Its YAML nodes are checked against the schema,
// which gives texts by dotted key, each with its position. koanf merges the
// environment and the flags over them. Then ${NAME} is replaced in what is left, and
// the texts are decoded and checked. Every step collects its mistakes and goes on, so that all of them
// are reported at once; a key that has one mistake is not given a second.
//
// All but the first step visit the keys in one walk, see place.
//
// No mistake, log line or print-out holds the secret part of a URL: see [URL].
package config
