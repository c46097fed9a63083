CREATE TABLE categories (category_id INT PRIMARY KEY, category_name VARCHAR(15) NOT NULL);
CREATE TABLE employees (employee_id INT PRIMARY KEY, last_name VARCHAR(20) NOT NULL, birth_date DATE, hire_date DATE);
CREATE TABLE orders (order_id INT PRIMARY KEY, customer_id VARCHAR(5), order_date {time} NULL, required_date {time} NULL, shipped_date {time} NULL);
CREATE TABLE order_details (order_id INT NOT NULL, product_id INT NOT NULL, quantity INT NOT NULL, PRIMARY KEY (order_id, product_id));
INSERT INTO categories VALUES (1, 'Beverages'), (2, 'Condiments');
INSERT INTO employees VALUES (1, 'Davolio', '1948-12-08', '1992-05-01');
INSERT INTO orders VALUES (10248, 'VINET', '1996-07-04', '1996-08-01', '1996-07-16'), (10249, 'TOMSP', '1996-07-05', '1996-08-16', NULL);
INSERT INTO order_details VALUES (10248, 11, 12), (10248, 42, 10)
