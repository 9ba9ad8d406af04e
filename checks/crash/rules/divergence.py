# ruff: noqa: E501 - a pattern broken over lines can no longer be searched for
"""NaN, Inf and runs that stop themselves because they diverged: never a case for a blind relaunch."""

from bot.model.crash import CrashClass
from checks.crash.rule import Rule

_NUMERICAL = CrashClass.NUMERICAL
_INTENT = r"nan_check|check_?nan|skip_?nan|nan_?policy|allow_nan|debug_nans\W{1,3}(?:true|false)|no nans? |without nans?|0 nan|isnan=false|nan_to_num|enabl\w* .{0,20}nan"

DIVERGENCE: tuple[Rule, ...] = (
    Rule(
        id="numerical.nonfinite_loss",
        crash_class=_NUMERICAL,
        needles=("loss", "perplexity"),
        pattern=r"loss .{0,40}\bis (?:nan|inf)\b|non-?\s?finite (?:train\w* |total |eval\w* )?loss|loss (?:value )?(?:is|was|are|became|becomes|went|has become|turned|turned to|went to|hit|contains?|=|:|of)? ?(?:not finite|non-?finite|(?:a |to )?[-+]?(?:nan|inf(?:inity)?))\b"
        r"|(?:nan|inf|infinite) (?:train\w* |or inf )?loss\b|loss (?:exploded|diverged|is diverging)|losses? (?:contain|were|are) (?:nan|non-?finite)|loss is not finite|invalid loss",
        unless=rf"best|min(?:imum)? (?:val\w* )?loss|initial|{_INTENT}",
        why="grug: 'Non-finite loss (nan) at step N.'; Levanter: 'Loss is NaN'; and the words of other trainers",
    ),
    Rule(
        id="numerical.diverged",
        crash_class=_NUMERICAL,
        needles=("diverge", "exploding", "exploded", "loss scale"),
        pattern=r"(?:training|model|run|optimi[sz]\w+|loss) (?:has |is |was )?(?:diverged|diverging)|diverged with loss|(?:loss|gradients?|grad norm) .{0,30}explod|loss scale already at minimum|minimum loss scale reached|loss scale (?:is |has )?(?:too small|below|fell|reached (?:the )?min)"
        r"|stopp\w+ .{0,40}diverge",
        unless=r"git|branch|(?:may|might|can|could|if|avoid|prevent) .{0,30}diverg|patience",
        why="DeepSpeed, fairseq, TensorFlow and others stop a diverged run",
    ),
    Rule(
        id="numerical.nonfinite_values",
        crash_class=_NUMERICAL,
        needles=("grad", "nan", "inf", "non-finite", "nonfinite", "not finite"),
        pattern=r"(?:abort|stop|exit|error|exception|fatal).{0,120}grad.norm\W{0,3}(?:nan|inf)\b|grad.norm\W{0,3}(?:nan|inf)\b.{0,60}(?:abort|stop|exit)|(?:encountered|found|detected|contains?|got|produced|returned|has|have|are|is|with) (?:an? |any |unexpected )?(?:nan|inf|infs|nans|infinite|non-?finite|`inf`)(?:s|\b).{0,60}(?:grad|loss|param|weight|activation|output|logit|value|tensor|norm|factor|matrix|entries|local|input)"
        r"|(?:grad\w*|grad.norm|norm|weights?|param\w*|activations?|logits?|outputs?|hidden states?) (?:is|are|was|were|became|contains?|has|have|=)? ?(?:\w+ )?(?:nan|inf|non-?finite|not finite)\b"
        r"|non-?finite (?:grad|norm|param|weight|update|value|activation|logit)|(?:nan|inf) (?:in|or inf in|detected|encountered|values?|grad)|invalid value \(nan\)|invalid value \(inf\)|non-finite norm|input matrix contained non-finite"
        r"|constraint .{0,60}real\(\).{0,120}invalid values|probability tensor contains|floatingpointerror|nanlossduringtraining",
        unless=rf"{_INTENT}|skipping (?:step|update|batch)|ignoring|loss_scaler|overflow!|dataset|column|missing values",
        why="anomaly detection, Megatron's local gradient checks, optimizers and samplers that meet NaN",
    ),
    Rule(
        id="numerical.factorisation",
        crash_class=_NUMERICAL,
        needles=("linalg", "cholesky", "eigh", "svd"),
        pattern=r"(?:failed to converge|not positive.?definite|did not converge|leading minor)",
        why="a preconditioner's matrix is no longer usable",
    ),
)
