-- What the next release changes in the state (sql/state/) of a database that has the latest
-- release. Functions, views and comments are made anew by the upgrade itself; see README.md here.

-- phase: catalog

-- phase: build

-- phase: swap
