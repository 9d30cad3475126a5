-- What the next release changes in the state (sql/00 to 19) of a database that has the latest
-- release, and what it removes. Functions and views are re-created by the upgrade itself.

-- It returns two columns more.
drop function pgrecall._phrases(text);
