"""The figures that are watched beside loss, gradient norm, throughput and learning rate, and what trainers call them.

A row has a figure under Hero's word for it, whoever logged it under which name. A contract adds words and names of its
own under ``[metrics.others]``; every figure that has a word is also watched for NaN and infinity.
"""

from collections.abc import Mapping

FURTHER: Mapping[str, tuple[str, ...]] = {
    "skipped_step": ("optim/skipped_step", "optim_skipped_step", "skipped_step", "train/skipped_step"),
    "skipped_steps": ("optim/skipped_steps", "skipped_steps", "skipped_steps_total"),
    "eval_loss": ("eval/loss", "eval_loss", "val/loss", "val_loss", "validation/loss", "validation_loss"),
    "eval_macro_loss": ("eval/macro_loss", "eval_macro_loss"),
    "eval_paloma_macro_loss": ("eval/paloma/macro_loss", "eval_paloma_macro_loss"),
    "router_entropy": (
        "router_entropy",
        "train/router/routing_entropy_mean",
        "train_router_routing_entropy_mean",
        "train/router/entropy",
    ),
    "token_drops": ("token_drops", "moe/drop_fraction", "moe_drop_fraction", "train/moe_drop_fraction"),
    "router_z_loss": (
        "router_z_loss",
        "z_loss",
        "train/router/z_loss_mean",
        "train_router_z_loss_mean",
        "train/router/router_z_loss",
        "train_router_router_z_loss",
    ),
    "router_bias": ("router_bias", "train/router/bias_max", "train_router_bias_max"),
    "router_bias_min": ("router_bias_min", "train/router/bias_min", "train_router_bias_min"),
    "mfu": ("mfu", "throughput/mfu", "throughput_mfu"),
}
"""Hero's word -> the names that are usual; of several in one row the first one counts.

``skipped_step`` is about one step (1 when it was skipped), ``skipped_steps`` counts them since the start. Slashed names
are Levanter's and W&B's, those with underscores their form in Finelog.
"""

LEVANTER: Mapping[str, str] = {
    "loss": "train_loss",
    "grad_norm": "grad_norm_total",
    "tokens_per_second": "throughput_tokens_per_second",
    "step_time_s": "throughput_duration",
    "lr": "optim_learning_rate",
}
"""What Levanter itself calls the contract's figures in Finelog, for those that the contract does not name."""
