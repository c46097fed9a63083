package engine

import "strings"

func upper(s string) string { return strings.ToUpper(s) }

func equalFold(a, b string) bool { return strings.EqualFold(a, b) }

// labels are what the session has said about itself.
func (s *session) labels() (module, action, client string) {
	s.label.Lock()
	defer s.label.Unlock()
	return s.module, s.action, s.client
}

// setLabels changes them; nil leaves one as it is.
func (s *session) setLabels(module, action, client *string) {
	s.label.Lock()
	defer s.label.Unlock()
	for _, l := range []struct {
		to   *string
		from *string
		most int
	}{{&s.module, module, 64}, {&s.action, action, 64}, {&s.client, client, 64}} {
		if l.from != nil {
			*l.to = (*l.from)[:min(len(*l.from), l.most)]
		}
	}
	s.wire.Module, s.wire.Action, s.wire.ClientID = s.module, s.action, s.client
}

// packageCall runs one call of a PL/SQL block.
func (s *session) packageCall(r *run, name string, args map[string]string) {
	pick := func(names ...string) *string {
		for _, n := range names {
			if v, ok := args[n]; ok {
				return &v
			}
		}
		return nil
	}
	switch name {
	case "DBMS_APPLICATION_INFO.SET_MODULE":
		s.setLabels(pick("MODULE_NAME", "1"), pick("ACTION_NAME", "2"), nil)
	case "DBMS_SESSION.SET_IDENTIFIER":
		s.setLabels(nil, nil, pick("CLIENT_ID", "1"))
	case "DBMS_STATS.GATHER_TABLE_STATS":
		owner, table := pick("OWNNAME", "1"), pick("TABNAME", "2")
		if table == nil {
			panic(refuse(6550, name))
		}
		if owner == nil {
			owner = &s.user
		}
		s.analyze(upper(*owner), upper(*table))
	default:
		panic(refuse(6550, name))
	}
}
