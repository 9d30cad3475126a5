-- Run once, by the image, in the database that it makes.
create extension pgrecall cascade;
select pgrecall_setup.install();
