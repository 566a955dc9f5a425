"""`prrt://` for cflib, on this project's transport.

    import cflib.crtp
    import openlink_cflib

    cflib.crtp.init_drivers()
    openlink_cflib.register()          # before or after init_drivers()
    Crazyflie().open_link('prrt://192.168.4.20:5000/50')

URIs are those of `openlink bridge --to`: `prrt://host:port[/ms][?keys=/path][&insecure=1]`, where `ms` is the longest
life of a setpoint. The other end is `openlink bridge --from prrt://... --to uart://...` on the drone.
"""

from .driver import OpenlinkDriver, register

__all__ = ['OpenlinkDriver', 'register']
