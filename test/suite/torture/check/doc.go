// Package check reads the history of a torture run and says what was wrong.
//
// [Check] is a pure function: no clock, no files, the same report for the same
// history. It believes the source, its server's log and what triggers saw in
// the coordination database, and never a node's own word. Each rule is a file
// of its own; a rule reports what it finds and never stops another.
//
// A run that was not disturbed proves nothing. When a fault never bit, or a
// counter that must grow stayed at zero, or a record is missing, the verdict is
// [Void]: neither passed nor failed.
package check
