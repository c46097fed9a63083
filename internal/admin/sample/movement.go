package sample

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
)

// now is SQLite's clock, to the millisecond, in UTC.
const now = `strftime('%Y-%m-%d %H:%M:%f', 'now')`

// movement is what happens in one transaction.
type movement struct {
	ctx  context.Context
	tx   *sql.Tx
	rand *rand.Rand
}

func (m *movement) exec(text string, args ...any) error {
	_, err := m.tx.ExecContext(m.ctx, text, args...)
	return err
}

func (m *movement) get(target any, text string, args ...any) error {
	return m.tx.QueryRowContext(m.ctx, text, args...).Scan(target)
}

// pick returns one value of a list.
func pick(m *movement, values []string) string { return values[m.rand.IntN(len(values))] }

// move makes one movement. Where there is nothing to move, it makes a new order, so
// that each movement changes something. An order takes about six movements of tasks
// and two of its own; with these shares the open ones stay few.
func (m *movement) move() error {
	var moved bool
	var err error
	switch n := m.rand.IntN(100); {
	case n < 8:
		return m.newOrder()
	case n < 62:
		moved, err = m.advanceTask()
	case n < 80:
		moved, err = m.advanceOrder()
	default:
		return m.moveStock()
	}
	if err != nil || moved {
		return err
	}
	return m.newOrder()
}

// fill stocks a new warehouse and takes its first orders.
func (m *movement) fill() error {
	for _, warehouse := range warehouses {
		for _, sku := range articles {
			if err := m.exec("INSERT INTO inventory VALUES ($1, $2, $3)", warehouse, sku, 40+m.rand.IntN(160)); err != nil {
				return err
			}
		}
	}
	for range 10 {
		if err := m.newOrder(); err != nil {
			return err
		}
	}
	return nil
}

func (m *movement) newOrder() error {
	number, err := m.next("orders")
	if err != nil {
		return err
	}
	order := fmt.Sprintf("ORD-%06d", number)
	cents := 500 + m.rand.IntN(50000)
	err = m.exec("INSERT INTO orders VALUES ($1, $2, 'NEW', $3, "+now+")", order, pick(m, customers), float64(cents)/100)
	if err != nil {
		return err
	}
	for range 1 + m.rand.IntN(3) {
		if number, err = m.next("wes_tasks"); err != nil {
			return err
		}
		task := fmt.Sprintf("TASK-%06d", number)
		if err := m.exec("INSERT INTO wes_tasks VALUES ($1, $2, 'CREATED', "+now+")", task, order); err != nil {
			return err
		}
	}
	return nil
}

// next returns the next number of a table from which nothing is ever deleted.
func (m *movement) next(table string) (int, error) {
	var highest int
	err := m.get(&highest, "SELECT coalesce(max(rowid), 0) FROM "+table)
	return highest + 1, err
}

// one returns a random row's first column, and false where there is none.
func (m *movement) one(table, column, condition string) (string, bool, error) {
	var n int
	if err := m.get(&n, "SELECT count(*) FROM "+table+" WHERE "+condition); err != nil || n == 0 {
		return "", false, err
	}
	var value string
	err := m.get(&value, "SELECT "+column+" FROM "+table+" WHERE "+condition+" ORDER BY rowid LIMIT 1 OFFSET $1", m.rand.IntN(n))
	return value, err == nil, err
}

// advanceTask moves a task one step on, and its order with it: the first task
// that is released releases the order, and the last that is done sets it to picked.
func (m *movement) advanceTask() (bool, error) {
	task, found, err := m.one("wes_tasks", "task_id", "status IN ('CREATED', 'RELEASED', 'PICKING')")
	if err != nil || !found {
		return false, err
	}
	var order, status string
	err = m.tx.QueryRowContext(m.ctx, `
UPDATE wes_tasks
SET status = CASE status WHEN 'CREATED' THEN 'RELEASED' WHEN 'RELEASED' THEN 'PICKING' ELSE 'DONE' END,
    updated_at = `+now+`
WHERE task_id = $1
RETURNING order_id, status`, task).Scan(&order, &status)
	if err != nil {
		return false, err
	}
	switch status {
	case "RELEASED":
		err = m.exec("UPDATE orders SET status = 'RELEASED', updated_at = "+now+" WHERE order_id = $1 AND status = 'NEW'", order)
	case "DONE":
		err = errors.Join(m.takeStock(), m.exec(`
UPDATE orders
SET status = 'PICKED', updated_at = `+now+`
WHERE order_id = $1
  AND NOT EXISTS (SELECT 1 FROM wes_tasks AS t WHERE t.order_id = $1 AND t.status <> 'DONE')`, order))
	}
	return true, err
}

func (m *movement) advanceOrder() (bool, error) {
	order, found, err := m.one("orders", "order_id", "status IN ('PICKED', 'SHIPPED')")
	if err != nil || !found {
		return false, err
	}
	return true, m.exec(`
UPDATE orders
SET status = CASE status WHEN 'PICKED' THEN 'SHIPPED' ELSE 'DELIVERED' END,
    updated_at = `+now+`
WHERE order_id = $1`, order)
}

// takeStock takes what a task has picked. An article that runs out stays, with
// the quantity 0, until moveStock decides on it.
func (m *movement) takeStock() error {
	row, found, err := m.one("inventory", "rowid", "quantity > 0")
	if err != nil || !found {
		return err
	}
	return m.exec("UPDATE inventory SET quantity = max(0, quantity - $1) WHERE rowid = $2", 1+m.rand.IntN(8), row)
}

// moveStock replenishes an article, or takes one off the list, or brings one
// back that was off.
func (m *movement) moveStock() error {
	warehouse, sku := pick(m, warehouses), pick(m, articles)
	if m.rand.IntN(10) == 0 {
		return m.exec("DELETE FROM inventory WHERE warehouse = $1 AND sku = $2", warehouse, sku)
	}
	return m.exec(`
INSERT INTO inventory VALUES ($1, $2, $3)
ON CONFLICT (warehouse, sku) DO UPDATE SET quantity = quantity + excluded.quantity`,
		warehouse, sku, 5+m.rand.IntN(40))
}

var (
	warehouses = []string{"BERLIN", "HAMBURG"}
	customers  = []string{
		"Aldous Freight", "Bäckerei Möller", "Café Zürich", "Dunham & Sons", "Étoile du Nord",
		"Fjord Outfitters", "Garten-Center Süd", "Håkansson AB", "Iberia Tools", "Jansen Elektro",
	}
	articles = []string{
		"BOLT-M6", "BOLT-M8", "CABLE-2M", "CABLE-5M", "DRILL-18V", "GLOVES-L", "GLOVES-M", "HAMMER-500",
		"LAMP-E27", "PAINT-WHITE", "PUMP-12V", "SAW-300", "SCREW-4X40", "TAPE-50M", "WRENCH-13",
	}
)
