-- The puzzles that wait or are being solved, by tenant: one walk through job, which has a row for some thousands of puzzles at a time. No index could give it without
-- being written at each claim; so its reader asks as seldom as it can.
select tenant_id as "tenant_id!", sum(hi - lo)::bigint as "puzzles!"
from job
group by tenant_id
