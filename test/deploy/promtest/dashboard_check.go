package promtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// gridWidth is how wide a dashboard of Grafana is.
const gridWidth = 24

// chosen is the data source that a person chooses: no other may be named.
var chosen = Datasource{Type: "prometheus", UID: "${datasource}"}

// builtIn are the variables that Grafana itself sets.
var builtIn = []string{"__rate_interval", "__range", "__interval"}

// Check complains of everything that would make a dashboard of ours show
// nothing, or something else than was meant, in any Grafana from version 11 on.
func (d Dashboard) Check() error {
	errs := []error{d.checkHead(), d.checkVariables(), d.checkLayout()}
	for _, p := range d.Panels {
		if err := p.check(); err != nil {
			errs = append(errs, fmt.Errorf("panel %d %q: %w", p.ID, p.Title, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("dashboard %s: %w", d.File, err)
	}
	return d.checkRates()
}

func (d Dashboard) checkHead() error {
	var errs []error
	complain := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	complain(d.UID != "observerd-"+strings.TrimSuffix(d.File, ".json"), "its uid is %q; links need that it is called as its file", d.UID)
	complain(!strings.HasPrefix(d.Title, "observerd / "), "its title is %q", d.Title)
	complain(d.Description == "", "no description")
	complain(!slices.Equal(d.Tags, []string{"observerd"}), "its tags are %q; the links between the dashboards need [observerd]", d.Tags)
	complain(!d.Editable, "it is not editable")
	complain(d.SchemaVersion != 41, "its schemaVersion is %d; 41 is read by Grafana 11 and 12", d.SchemaVersion)
	complain(d.Time.From == "" || d.Time.To == "" || d.Refresh == "", "no range of time, or no refresh")
	complain(len(d.Links) != 1 || d.Links[0].Type != "dashboards" || !slices.Equal(d.Links[0].Tags, d.Tags) ||
		!d.Links[0].IncludeVars || !d.Links[0].KeepTime, "it does not link to the others with its variables and its time: %+v", d.Links)
	for _, a := range d.Annotations.List {
		complain(a.Datasource != chosen, "the annotation %s is of %+v, not of the data source that was chosen", a.Name, a.Datasource)
	}
	return errors.Join(errs...)
}

// checkVariables looks at what is chosen and what is used of it.
func (d Dashboard) checkVariables() error {
	var errs []error
	defined := slices.Clone(builtIn)
	for _, v := range d.Templating.List {
		if slices.Contains(defined, v.Name) {
			errs = append(errs, fmt.Errorf("two variables are called %s", v.Name))
		}
		defined = append(defined, v.Name)
		if err := v.check(); err != nil {
			errs = append(errs, fmt.Errorf("variable %s: %w", v.Name, err))
		}
	}
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	used := usedVariables(string(text))
	for _, name := range slices.Compact(slices.Sorted(slices.Values(used))) {
		// "$__all" is the value that stands for all of them.
		if !slices.Contains(defined, name) && name != "__all" {
			errs = append(errs, fmt.Errorf("$%s is used and not defined", name))
		}
	}
	for _, name := range defined[len(builtIn):] {
		if !slices.Contains(used, name) {
			errs = append(errs, fmt.Errorf("$%s is defined and not used", name))
		}
	}
	return errors.Join(errs...)
}

func (v Variable) check() error {
	if v.Name == "datasource" {
		if v.Type != "datasource" || string(v.Query) != `"prometheus"` {
			return errors.New("it does not choose among the data sources of Prometheus")
		}
		return nil
	}
	var query struct {
		Query string `json:"query"`
	}
	if err := json.Unmarshal(v.Query, &query); err != nil {
		return err
	}
	_, _, ok := v.labelValues()
	switch {
	case v.Type != "query" || !ok || query.Query != v.Definition:
		return fmt.Errorf("definition %q and query %q are not one label_values(series, label)", v.Definition, query.Query)
	case v.Datasource != chosen:
		return fmt.Errorf("it asks %+v, not the data source that was chosen", v.Datasource)
	case v.Multi && v.AllValue != ".+":
		return errors.New("all of it is not written as .+, which also finds what is new")
	case v.Multi != v.IncludeAll:
		return errors.New("several, but not all, or the other way round")
	}
	return nil
}

// checkLayout complains of panels that share an id, a title or a place.
func (d Dashboard) checkLayout() error {
	var errs []error
	for i, p := range d.Panels {
		g := p.GridPos
		if p.ID < 1 || g.W < 1 || g.H < 1 || g.X < 0 || g.Y < 0 || g.X+g.W > gridWidth {
			errs = append(errs, fmt.Errorf("panel %q: id %d, place %+v", p.Title, p.ID, g))
		}
		for _, other := range d.Panels[:i] {
			if other.ID == p.ID || other.Title == p.Title || other.GridPos.overlaps(g) {
				errs = append(errs, fmt.Errorf("panels %d %q and %d %q share an id, a title or a place", other.ID, other.Title, p.ID, p.Title))
			}
		}
	}
	return errors.Join(errs...)
}

func (g GridPos) overlaps(o GridPos) bool {
	return g.X < o.X+o.W && o.X < g.X+g.W && g.Y < o.Y+o.H && o.Y < g.Y+g.H
}

// checkRates complains of rates in graphs over a window that does not follow
// the graph's step.
func (d Dashboard) checkRates() error {
	all, err := d.Exprs(AnyValues())
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range all {
		if !e.Instant {
			errs = append(errs, e.rates(RateInterval))
		}
	}
	return errors.Join(errs...)
}
