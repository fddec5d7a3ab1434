-- What is done of a batch, summed from its result headers. $1 part, $2 batch.
select
    coalesce(sum(hi - lo), 0)::bigint as "done!",
    coalesce(sum(unique_count), 0)::bigint as "unique!",
    coalesce(sum(multiple_count), 0)::bigint as "multiple!",
    coalesce(sum(no_solution_count), 0)::bigint as "no_solution!",
    coalesce(sum(invalid_count), 0)::bigint as "invalid!",
    coalesce(sum(undecided_count), 0)::bigint as "undecided!",
    coalesce(sum(failed_count), 0)::bigint as "failed!",
    coalesce(sum(cancelled_count), 0)::bigint as "cancelled!",
    coalesce(sum(over_limit_count), 0)::bigint as "over_limit!",
    least(coalesce(sum(placement_count), 0), 9223372036854775807)::bigint as "placements!"
from result
where part = $1 and batch_id = $2
