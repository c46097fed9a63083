// Package examine gathers what 'observerd doctor' judges: facts on a coordination
// database and its server. It reads in read-only transactions on connections of its
// own, sets nothing in the session and takes no lock.
package examine
