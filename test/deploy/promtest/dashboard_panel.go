package promtest

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// panelTypes are those that ship with Grafana and that our dashboards use.
var panelTypes = []string{"bargauge", "gauge", "stat", "state-timeline", "status-history", "table", "timeseries"}

// graphs are the types of panels that show a range of time.
var graphs = []string{"state-timeline", "status-history", "timeseries"}

// units are ids of Grafana's units; one that it does not know is printed as it
// stands. A suffix of one's own is possible too.
var units = regexp.MustCompile(`^(none|short|percentunit|s|suffix:.+)$`)

// colours have a name in Grafana.
var colours = []string{"blue", "green", "orange", "red", "text"}

func (p Panel) check() error {
	var errs []error
	complain := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	complain(!slices.Contains(panelTypes, p.Type), "type %q is none of %q", p.Type, panelTypes)
	complain(p.Title == "", "no title")
	complain(!strings.Contains(p.Description, "Healthy: "), `its description does not say "Healthy: …"`)
	complain(p.Datasource != chosen, "it asks %+v, not the data source that was chosen", p.Datasource)
	complain(p.Interval != "" && !regexp.MustCompile(`^\d+[sm]$`).MatchString(p.Interval), "interval %q", p.Interval)
	complain(!strings.Contains(p.Type, "-") && !units.MatchString(p.FieldConfig.Defaults.Unit), "unit %q", p.FieldConfig.Defaults.Unit)
	complain(len(p.Options) == 0, "no options")
	return errors.Join(append(errs, p.checkTargets(), p.FieldConfig.Defaults.Thresholds.check())...)
}

func (p Panel) checkTargets() error {
	if len(p.Targets) == 0 {
		return errors.New("no query")
	}
	var errs []error
	var ids []string
	for _, t := range p.Targets {
		if err := t.check(p.Type); err != nil {
			errs = append(errs, fmt.Errorf("query %q: %w", t.RefID, err))
		}
		if slices.Contains(ids, t.RefID) {
			errs = append(errs, fmt.Errorf("two queries are called %s", t.RefID))
		}
		ids = append(ids, t.RefID)
	}
	return errors.Join(errs...)
}

// check complains of a query that does not suit the panel.
func (t Target) check(panel string) error {
	table, graph := panel == "table", slices.Contains(graphs, panel)
	switch {
	case t.Expr == "" || t.RefID == "":
		return errors.New("no expression, or no id")
	case t.Instant == t.Range:
		return errors.New("it asks either for a moment or for a range")
	case graph && t.Instant || table && t.Range:
		return fmt.Errorf("instant: %t does not suit a %s", t.Instant, panel)
	case table != (t.Format == "table"):
		return fmt.Errorf("format %q does not suit a %s", t.Format, panel)
	case table != (t.LegendFormat == ""):
		return fmt.Errorf("legend %q does not suit a %s", t.LegendFormat, panel)
	}
	return nil
}

// check complains of thresholds that are not in order. Nil is none.
func (t *Thresholds) check() error {
	if t == nil {
		return nil
	}
	if t.Mode != "absolute" || len(t.Steps) == 0 || t.Steps[0].Value != nil {
		return fmt.Errorf("thresholds are absolute and begin with one without a value: %+v", *t)
	}
	for i, step := range t.Steps {
		if !slices.Contains(colours, step.Color) {
			return fmt.Errorf("the colour %q is none of %q", step.Color, colours)
		}
		if i > 0 && step.Value == nil || i > 1 && *step.Value <= *t.Steps[i-1].Value {
			return fmt.Errorf("threshold %d is not above the one before", i+1)
		}
	}
	return nil
}
