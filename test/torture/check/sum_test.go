package check

import (
	"reflect"
	"testing"
)

// TestPlusLeavesNoCountOut sets every number of a report to 1 and wants 2.
func TestPlusLeavesNoCountOut(t *testing.T) {
	t.Parallel()
	one := Report{
		Found: map[Kind]int{Lost: 1}, Void: []string{"v"}, Unchecked: []string{"u"},
		Faults: []FaultCount{{"cut", 1, 1}}, Required: []Requirement{{"c", 1}},
	}
	setToOne(reflect.ValueOf(&one.Counts).Elem())
	sum := one.Plus(one)
	counts := reflect.ValueOf(sum.Counts)
	for i := range counts.NumField() {
		name := counts.Type().Field(i).Name
		switch f := counts.Field(i).Interface().(type) {
		case int:
			if f != 2 {
				t.Errorf("%s is %d", name, f)
			}
		case map[string]int:
			if f["x"] != 2 {
				t.Errorf("%s is %v", name, f)
			}
		case Overlaps:
			if (f != Overlaps{Calm: 2, Outside: 2, Within: 2, Paired: 2, Longest: 1}) {
				t.Errorf("%s is %+v", name, f)
			}
		default:
			t.Errorf("%s is not looked at", name)
		}
	}
	if sum.Found[Lost] != 2 || sum.Faults[0] != (FaultCount{"cut", 2, 2}) || sum.Required[0].Value != 2 ||
		len(sum.Void) != 2 || len(sum.Unchecked) != 1 || len(sum.Faults) != 1 {
		t.Errorf("the sum is %+v", sum)
	}
}

func setToOne(v reflect.Value) {
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.Struct:
			setToOne(f)
		case reflect.Map:
			f.Set(reflect.ValueOf(map[string]int{"x": 1}))
		default:
			f.SetInt(1)
		}
	}
}
