package oratest

import (
	"fmt"

	"github.com/observerd/observerd/test/kit/oratest/wire"
)

// texts are the messages of the refusals that tests ask for by their code.
var texts = map[int]string{
	28:    "your session has been killed",
	60:    "deadlock detected while waiting for resource",
	600:   "internal error code",
	900:   "invalid SQL statement",
	904:   "invalid identifier",
	942:   "table or view does not exist",
	1001:  "invalid cursor",
	1012:  "not logged on",
	1013:  "user requested cancel of current operation",
	1017:  "invalid username/password; logon denied",
	1031:  "insufficient privileges",
	1033:  "ORACLE initialization or shutdown in progress",
	1089:  "immediate shutdown or close in progress",
	1403:  "no data found",
	1555:  "snapshot too old",
	1722:  "invalid number",
	2391:  "exceeded simultaneous SESSIONS_PER_USER limit",
	2396:  "exceeded maximum idle time, please connect again",
	3113:  "end-of-file on communication channel",
	3115:  "unsupported network datatype or representation",
	28000: "The account is locked.",
	28001: "the password has expired",
}

// message is the line that a client sees.
func message(r *wire.Error) string {
	text := r.Text
	if text == "" {
		text = texts[r.Code]
	}
	return fmt.Sprintf("ORA-%05d: %s\n", r.Code, text)
}
