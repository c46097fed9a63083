// Package page holds the tests of the status page as people meet it: in a real browser, before
// a real cluster of two nodes. They ask for texts, roles and behaviour, as a reader does, and for
// no class or id of the markup.
//
// Every tab watches what a page must never do: say an error on its console, or ask another
// host for anything. Pictures of the page are left in .cache/page of the repository.
package page
