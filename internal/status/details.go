package status

import (
	"encoding/json"
	"time"
)

// ObserverDetails is all that is known of one observer. Its parts are those of a [Report].
type ObserverDetails struct {
	At       time.Time `json:"at"`
	Observer Observer  `json:"observer"`
	// URL is that of the source, without secrets; empty for an observer that is not
	// configured.
	URL string `json:"source_url,omitempty"`
	// Definition is what the configuration says.
	Definition Definition `json:"definition"`
	// Polls and Acts are the last ones, newest first.
	Polls       []Poll       `json:"polls"`
	Sinks       []Sink       `json:"sinks"`
	Sweeps      []Sweep      `json:"sweeps"`
	Generations []Generation `json:"generations"`
	// Accounts are the refusals of the source's account.
	Accounts []Account `json:"refused_accounts"`
	Acts     []Act     `json:"acts"`
}

// Act is what an operator did: Actor did Action to the stream or lock Subject. Detail has the
// reason, too.
type Act struct {
	At      time.Time `json:"at"`
	Actor   string    `json:"actor"`
	Action  string    `json:"action"`
	Subject string    `json:"subject"`
	Detail  string    `json:"detail,omitempty"`
}

// Setting is a key of the configuration, without the secret that it may hold.
type Setting struct{ Key, Value string }

// Definition are the settings of an observer. In JSON it is an object.
type Definition []Setting

// MarshalJSON implements [json.Marshaler].
func (d Definition) MarshalJSON() ([]byte, error) {
	object := make(map[string]string, len(d))
	for _, s := range d {
		object[s.Key] = s.Value
	}
	return json.Marshal(object)
}

// HeldLock is a general lock that is held, once for each holder.
type HeldLock struct {
	Lock     string            `json:"lock"`
	Holder   string            `json:"holder"`
	Term     string            `json:"term"`
	Fence    int64             `json:"fence"`
	TTL      time.Duration     `json:"ttl_ms"`
	Age      time.Duration     `json:"age_ms"`
	Left     time.Duration     `json:"ttl_left_ms"`
	Waiting  int               `json:"waiting"`
	Metadata map[string]string `json:"metadata,omitempty"`
}
