//! Scenarios that must be refused, with the exact messages. `bad.txt` holds them all; when messages
//! change, replace it with the text that the test prints.

use super::*;

/// Name, text to replace in the valid scenario, replacement (appended when there is nothing to
/// replace), and settings of the command line.
type Case = (&'static str, &'static str, &'static str, &'static [&'static str]);

/// The second link's rate and delay.
const LTE: &str = "rate_mbit = 60\nrtt_ms = [25, 45]";

const CASES: &[Case] = &[
    ("not TOML", "rtt_ms = 13", "rtt_ms = 13 14", &[]),
    ("a key given twice", "rtt_ms = 13", "rtt_ms = 13\nrtt_ms = 13", &[]),
    ("unknown section", "[bond.scheduler]", "[bonds]\n[bond.scheduler]", &[]),
    ("unknown option", "payload_bytes", "payload_byte", &[]),
    ("unknown option without a resemblance", "mbit = 50", "mbit = 50, colour = 1", &[]),
    ("empty name", "name = \"x\"", "name = \"\"", &[]),
    ("no duration", "duration_s = 10\n", "", &[]),
    ("negative rate", "rate_mbit = 64", "rate_mbit = -64", &[]),
    ("no rate", "rate_mbit = 64\n", "", &[]),
    ("no delay", "rtt_ms = 13\n", "", &[]),
    ("a text for a number", "rtt_ms = 13", "rtt_ms = \"13\"", &[]),
    ("a range upside down", "[25, 45]", "[45, 25]", &[]),
    ("a range of three", "[25, 45]", "[25, 35, 45]", &[]),
    ("rate and trace", "rate_mbit = 64", "rate_mbit = 64\ntrace = \"good.mahi\"", &[]),
    ("no such trace", "rate_mbit = 64", "trace = \"absent.mahi\"", &[]),
    ("trace out of order", "rate_mbit = 64", "trace = \"disorder.mahi\"", &[]),
    ("trace with words", "rate_mbit = 64", "trace = \"words.mahi\"", &[]),
    ("no such conditions", "rate_mbit = 64", "like = \"absent.toml\"", &[]),
    ("wrong conditions", "rate_mbit = 64", "like = \"wrong.toml\"", &[]),
    ("nested conditions", "rate_mbit = 64", "like = \"nested.toml\"", &[]),
    ("loss above one", "rtt_ms = 13", "rtt_ms = 13\nloss = 2", &[]),
    ("half a loss chain", "rtt_ms = 13", "rtt_ms = 13\nloss = { p_good_bad = 0.1 }", &[]),
    ("outages out of order", "rtt_ms = 13", "rtt_ms = 13\noutages_s = [[3, 4], [1, 2]]", &[]),
    ("unknown queue", "rtt_ms = 13", "rtt_ms = 13\nqueue = \"coddle\"", &[]),
    (
        "a bucket below a packet",
        "rtt_ms = 13",
        "rtt_ms = 13\npolicer = { rate_mbit = 5, burst_bytes = 1500 }",
        &[],
    ),
    ("half a bucket", "rtt_ms = 13", "rtt_ms = 13\nshaper = { rate_mbit = 5, burst = 9000 }", &[]),
    ("a bucket that is a number", "rtt_ms = 13", "rtt_ms = 13\nup = { shaper = 5 }", &[]),
    ("grants without gaps", "rtt_ms = 13", "rtt_ms = 13\ngrants = { peak = 1 }", &[]),
    ("gaps that are none", "rtt_ms = 13", "rtt_ms = 13\ngrants = { gap_ms = [0.5, 10] }", &[]),
    (
        "grants and frames",
        "rtt_ms = 13",
        "rtt_ms = 13\ngrants = { gap_ms = 10 }\naggregation = { air_ms = 2 }",
        &[],
    ),
    (
        "frames of nothing",
        "rtt_ms = 13",
        "rtt_ms = 13\naggregation = { packets = 0, air_ms = 0 }",
        &[],
    ),
    (
        "a trace has its own times",
        "rate_mbit = 64",
        "trace = \"good.mahi\"\nrate_steps = [[1, 2]]\ngrants = { gap_ms = 10 }",
        &[],
    ),
    ("rates out of order", "rtt_ms = 13", "rtt_ms = 13\nrate_steps = [[2, 5], [1, 6]]", &[]),
    (
        "a rate after its repetition",
        "rtt_ms = 13",
        "rtt_ms = 13\nrate_steps = [[2, 5]]\nrate_repeat_s = 2",
        &[],
    ),
    (
        "a rate that is zero for ever",
        "rtt_ms = 13",
        "rtt_ms = 13\nrate_steps = [[0, 0]]\nrate_repeat_s = 2",
        &[],
    ),
    ("a repetition of nothing", "rtt_ms = 13", "rtt_ms = 13\nrate_repeat_s = 2", &[]),
    ("two rooms", "rtt_ms = 13", "rtt_ms = 13\nqueue_packets = 10\nqueue_ms = 10", &[]),
    (
        "packets that scale",
        "rtt_ms = 13",
        "rtt_ms = 13\nqueue_packets = 10\nqueue_scales = true",
        &[],
    ),
    (
        "a delay for the whole in a direction",
        "rtt_ms = 13",
        "rtt_ms = 13\nup = { rtt_ms = 5 }",
        &[],
    ),
    ("a link name with a dot", "[links.dsl]", "[links.\"d.l\"]", &[]),
    ("through itself", "rtt_ms = 13", "rtt_ms = 13\nthrough = \"dsl\"", &[]),
    (
        "through a chain",
        "rtt_ms = 13",
        "rtt_ms = 13\nthrough = \"lte\"\n[links.x]\n\
      rate_mbit = 1\nrtt_ms = 1\nthrough = \"dsl\"",
        &[],
    ),
    ("missing link", "links = [\"dsl\", \"lte\"]", "links = [\"dsl\", \"lta\"]", &[]),
    ("the same link twice", "links = [\"dsl\", \"lte\"]", "links = [\"dsl\", \"dsl\"]", &[]),
    ("a bond without links", "links = [\"dsl\", \"lte\"]", "links = []", &[]),
    ("unknown scheduler", "\"adaptive-wrr\"", "\"adaptive-wwr\"", &[]),
    ("options of another scheduler", "\"adaptive-wrr\"", "\"min-rtt\"\nk = 0.5", &[]),
    ("initial weight too large", "\"adaptive-wrr\"", "\"adaptive-wrr\"\ninitial_weight = 51", &[]),
    ("timeout of an adaptive timer", "[[app]]", "[bond.resequencer]\ntimeout_ms = 5\n[[app]]", &[]),
    ("unknown kind", "kind = \"udp\"", "kind = \"upd\"", &[]),
    ("no kind", "kind = \"udp\"\n", "", &[]),
    ("no layer", ", layer = \"wire\"", "", &[]),
    ("unknown layer", "\"wire\"", "\"ip\"", &[]),
    ("no rate of an application", "rate = { mbit = 50, layer = \"wire\" }\n", "", &[]),
    ("another shape's options", "mbit = 50", "shape = \"ramp-002\", mbit = 50, low_mbit = 9", &[]),
    ("steps out of order", "mbit = 50", "shape = \"steps\", steps = [[1, 5], [0, 5]]", &[]),
    ("a falling ramp", "mbit = 50", "shape = \"ramp-002\", low_mbit = 9, high_mbit = 8", &[]),
    ("packet too long", "payload_bytes = 1460", "payload_bytes = 1473", &[]),
    ("stops before it starts", "[[app]]", "[[app]]\nstart_s = 5\nstop_s = 5", &[]),
    ("may start after it stops", "[[app]]", "[[app]]\nstart_s = [1, 5]\nstop_s = 4", &[]),
    ("a range that runs backwards", "[[app]]", "[[app]]\nstart_s = [5, 1]", &[]),
    ("stops after the end", "[[app]]", "[[app]]\nstop_s = 11", &[]),
    ("via nothing", "[[app]]", "[[app]]\nvia = \"wifi\"", &[]),
    ("two of one name", "", "[[app]]\nname = \"flow\"\nkind = \"tcp\"\n", &[]),
    ("via a steering node that is not there", "[[app]]", "[[app]]\nvia = \"steer\"", &[]),
    ("a client without a steering node", "[[app]]", "[[app]]\nclient = 1", &[]),
    ("steering over nothing", "[bond]", "[steer]\npolicy = \"min-rtt\"\n[bond]", &[]),
    (
        "steering over a missing link, by shares of another number",
        "[bond]",
        "[steer]\nlinks = [\"dsl\", \"lta\", \"lte\"]\npolicy = \"fixed\"\nshares = [50]\n[bond]",
        &[],
    ),
    (
        "fixed steering without shares",
        "[bond]",
        "[steer]\nlinks = [\"dsl\", \"lte\"]\npolicy = \"fixed\"\n[bond]",
        &[],
    ),
    (
        "shares that are none",
        "[bond]",
        "[steer]\nlinks = [\"dsl\", \"lte\"]\npolicy = \"fixed\"\nshares = [0, 1.5]\n[bond]",
        &[],
    ),
    (
        "steering by a scheduler of the bond, or by none",
        "[bond]",
        "[steer]\nlinks = [\"dsl\"]\npolicy = \"redundant\"\nper = \"byte\"\n[bond]",
        &[],
    ),
    (
        "shares of a policy that measures, and a policy unknown",
        "[bond]",
        "[steer]\nlinks = [\"dsl\"]\nshares = [1]\n[bond]",
        &["steer.dida={hold=\"optimal\", sack=\"hide\", holdd=1}"],
    ),
    (
        "a hold that is none, and a client that says nothing",
        "[bond]",
        "[steer]\nlinks = [\"dsl\"]\ndida = { hold = -1 }\nclient = {}\n[bond]",
        &["steer.clients=0", "steer.policy=\"min-rt\""],
    ),
    (
        "a client that is not there",
        "[[app]]",
        "[steer]\nlinks = [\"dsl\"]\nclients = 2\n[[app]]\nvia = \"steer\"\nclient = 3",
        &[],
    ),
    (
        "recovery that needs SACK",
        "",
        "[[app]]\nname = \"t\"\nkind = \"tcp\"\nsack = false\nrecovery = \"rack-tlp\"\n\
      undo = 1\n",
        &[],
    ),
    (
        "unknown controller",
        "",
        "[[app]]\nname = \"t\"\nkind = \"tcp\"\ncontroller = \"cubik\"\n",
        &[],
    ),
    (
        "options of other controllers",
        "",
        "[[app]]\nname = \"t\"\nkind = \"tcp\"\ncontroller = \"bbr\"\nslow_start = \"hystart\"\n\
         repairs = \"latch\"\nadv = 100\ndelay_ms = 50\n",
        &[],
    ),
    (
        "what WhiteHaul cannot be told",
        "",
        "[[app]]\nname = \"t\"\nkind = \"tcp\"\ncontroller = \"whitehaul\"\n\
         slow_start = \"slow\"\nrepairs = [\"latsch\", \"delays\"]\nadv = \"best\"\n\
         delay_ms = 20\n",
        &[],
    ),
    (
        "what Edinburgh cannot be told",
        "",
        "[[app]]\nname = \"t\"\nkind = \"tcp\"\ncontroller = \"edinburgh\"\nadv = 1\n\
         delay_ms = 1001\nrepairs = [\"latch\"]\n",
        &[],
    ),
    ("sweep of an unknown key", "", "[[sweep]]\nkey = \"bond.scheduler.kk\"\nvalues = [1]\n", &[]),
    ("sweep through a value", "", "[[sweep]]\nkey = \"title.x\"\nvalues = [1]\n", &[]),
    (
        "sweep of a wrong value",
        "",
        "[[sweep]]\nkey = \"bond.scheduler.k\"\nvalues = [1,\n-1]\n",
        &[],
    ),
    ("sweep without values", "", "[[sweep]]\nkey = \"bond.scheduler.k\"\n", &[]),
    (
        "sweep twice",
        "",
        "[[sweep]]\nkey = \"title\"\nvalues = [\"a\", \"a\"]\n\
      [[sweep]]\nkey = \"title\"\nvalues = [\"b\"]\n",
        &[],
    ),
    ("sweep of no values", "", "[[sweep]]\nkey = \"app.9.x\"\nvalues = []\n", &[]),
    ("sweep of no application", "", "[[sweep]]\nkey = \"app.glow.rate\"\nvalues = [1]\n", &[]),
    (
        "sweep too large",
        "",
        "[[sweep]]\nkey = \"duration_s\"\nvalues = \
         [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,\
         17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33]\n\
         [[sweep]]\nkey = \"links.dsl.rate_mbit\"\nvalues = \
         [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,\
         17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33]\n\
         [[sweep]]\nkey = \"links.dsl.price\"\nvalues = [0, 1, 2, 3]\n",
        &[],
    ),
    (
        "a wrong application beside a sound check",
        "mbit = 50",
        "mbit = 0",
        &["check=[{name=\"c\", source=\"s\", metric=\"goodput_mbit.flow\"}]"],
    ),
    (
        "labels of another number",
        "",
        "[[sweep]]\nkey = \"title\"\nvalues = [\"a\"]\n\
      labels = [\"b\", \"c\"]\n",
        &[],
    ),
    ("unknown series", "", "[capture]\nseries = [\"weights\"]\n", &[]),
    (
        "a series not captured",
        "",
        "[[measure]]\nname = \"m\"\nreduce = \"sum\"\n\
      series = \"goodput.flow\"\n",
        &[],
    ),
    (
        "a series of nobody",
        "",
        "[capture]\nseries = \"goodput\"\n[[measure]]\nname = \"m\"\n\
      reduce = \"sum\"\nseries = \"goodput.glow\"\n",
        &[],
    ),
    (
        "a measure that ends after the run",
        "",
        "[capture]\nseries = \"losses\"\n[[measure]]\n\
      name = \"m\"\nreduce = \"sum\"\nseries = \"losses\"\nto_s = 11\n",
        &[],
    ),
    (
        "unknown metric",
        "",
        "[[check]]\nname = \"c\"\nsource = \"s\"\nmetric = \"loss_percant\"\n",
        &[],
    ),
    (
        "metric of nobody",
        "",
        "[[check]]\nname = \"c\"\nsource = \"s\"\n\
      metric = \"goodput_mbit.dsl\"\n",
        &[],
    ),
    (
        "check without a paper",
        "",
        "[[check]]\nname = \"c\"\nsource = \"s\"\n\
      kind = \"rms-ln-error\"\nmetric = \"loss_percent\"\n",
        &[],
    ),
    (
        "a line of the paper without an order or a captured series",
        "",
        "[[paper.line]]\nseries = \"losses\"\nsource = \"s\"\npoints = [[1, 2], [0, 2]]\n",
        &[],
    ),
    (
        "check of another kind's option",
        "",
        "[[check]]\nname = \"c\"\nsource = \"s\"\n\
      metric = \"loss_percent\"\nalong = \"k\"\nlow = 2\nhigh = 1\n",
        &[],
    ),
    (
        "check of an unknown axis and value",
        "",
        "[[sweep]]\nkey = \"bond.scheduler.k\"\n\
      values = [1]\n[[check]]\nname = \"c\"\nsource = \"s\"\nmetric = \"loss_percent\"\n\
      where = { k = [1, 2], kk = 1 }\n",
        &[],
    ),
    (
        "a check repeated for what it chooses by itself, and without a name for each",
        "",
        "[[sweep]]\nkey = \"bond.scheduler.k\"\nvalues = [1]\n\
      [[check]]\nname = \"c\"\nsource = \"s\"\nmetric = \"loss_percent\"\n\
      each = [\"k\", \"kk\"]\nwhere = { k = 1 }\n\
      [[check]]\nname = \"d\"\nsource = \"s\"\nmetric = \"loss_percent\"\n\
      required_of = { k = 1 }\n",
        &[],
    ),
    (
        "settings of a sweep that lead nowhere",
        "",
        "[[sweep]]\nname = \"way\"\nlabels = [\"a\", \"b\"]\n\
      values = [{ app.glow.via = \"dsl\" }, { links.dsl.rtt_ms = -1 }]\n",
        &[],
    ),
    ("a sweep with neither key nor settings", "", "[[sweep]]\nname = \"way\"\nvalues = [1]\n", &[]),
    (
        "figures that make no sense",
        "",
        "[[figure]]\nname = \"share_ms\"\nmetric = \"goodput_mbit\"\nto_metric = \"offered_mbit\"\n\
      [[figure]]\nname = \"good\"\nmetric = \"goodput_mbit\"\n\
      [[figure]]\nname = \"good\"\nmetric = \"jain_indx\"\nover = 1\nto = { k = 1 }\n",
        &[],
    ),
    (
        "a plot of metrics and axes that are not there",
        "",
        "[[sweep]]\nkey = \"links.dsl.price\"\nvalues = [0, 1, 2, 3, 4, 5, 6, 7, 8]\n\
      [[scatter]]\nname = \"p\"\ntitle = \"P\"\nx = \"goodput_mbt.flow\"\n\
      y = \"goodput_mbit.glow\"\ncolour = \"price\"\npanel = \"prise\"\n\
      hollow = { price = 9 }\nwhere = { k = 1 }\ncolor = 1\n",
        &[],
    ),
    (
        "plots of one name, without their metrics, and with units that do not add up",
        "",
        "[[scatter]]\nname = \"p\"\ntitle = \"P\"\ny = [\"goodput_mbit.flow\", \"jain_index\"]\n\
      [[scatter]]\nname = \"p\"\nx = \"jain_index\"\ny = \"goodput_mbit\"\nsums = true\n",
        &[],
    ),
    (
        "lines of a plot without points, name or source",
        "",
        "[[scatter]]\nname = \"p\"\ntitle = \"P\"\nx = \"jain_index\"\ny = \"goodput_mbit\"\n\
      [[scatter.line]]\nname = \"l\"\npoints = []\n\
      [[scatter.line]]\nsource = \"s\"\npoints = [[1, 2, 3]]\ncolour = 1\n\
      [[scatter.line]]\nname = \"l\"\nsource = \"s\"\n",
        &[],
    ),
    (
        "an unknown scheduler of MPTCP, a link twice, and one that is not there",
        "",
        "[[app]]\nname = \"m\"\nkind = \"tcp\"\nvia = \"mptcp\"\nscheduler = \"min-rt\"\n\
         subflows = [\"dsl\", \"dsl\", \"lle\"]\n",
        &[],
    ),
    (
        "a primary and a backup without a subflow",
        "",
        "[[app]]\nname = \"m\"\nkind = \"tcp\"\nvia = \"mptcp\"\nsubflows = [\"dsl\"]\n\
         primary = \"lte\"\nbackup = [\"lte\"]\n",
        &[],
    ),
    (
        "nothing but backups, and a buffer that is none",
        "",
        "[[app]]\nname = \"m\"\nkind = \"tcp\"\nvia = \"mptcp\"\nbackup = [\"dsl\", \"lte\"]\n\
         send_buffer_bytes = 100\n",
        &[],
    ),
    (
        "MPTCP without subflows",
        "",
        "[[app]]\nname = \"m\"\nkind = \"tcp\"\nvia = \"mptcp\"\nsubflows = []\n",
        &[],
    ),
    (
        "options of MPTCP without it",
        "",
        "[[app]]\nname = \"m\"\nkind = \"tcp\"\nvia = \"dsl\"\nscheduler = \"ecf\"\n\
         penalise = true\n",
        &[],
    ),
    (
        "a metric of a subflow that is none",
        "",
        "[[check]]\nname = \"c\"\nsource = \"s\"\nmetric = \"subflow_throughput_mbit.flow\"\n",
        &[],
    ),
    ("setting without a value", "", "", &["duration_s"]),
    ("setting of an unknown section", "", "", &["bnd.scheduler.k=1"]),
    ("setting of an unknown option", "", "", &["bond.scheduler.w_maxx=1"]),
    ("setting of a wrong value", "", "", &["bond.scheduler.k=2000"]),
    ("setting of an unknown application", "", "", &["app.glow.rate.mbit=1"]),
    ("an unknown event", "", "[[event]]\nat_s = 1\naction = \"explode\"\nlink = \"dsl\"\n", &[]),
    (
        "an event for a link that is not there",
        "",
        "[[event]]\nat_s = 1\naction = \"cut\"\nlink = \"dls\"\n",
        &[],
    ),
    (
        "events that lack what they need, or have what is another's",
        "",
        "[[event]]\naction = \"kill\"\nlink = \"dsl\"\n[[event]]\nat_s = 10\naction = \"rate\"\n\
         link = \"dsl\"\n[[event]]\nat_s = 1\naction = \"loss\"\nlink = \"dsl\"\nloss = 2\n\
         [[event]]\nat_s = 1\naction = \"stop\"\napp = \"glow\"\n[[event]]\nat_s = 1\n",
        &[],
    ),
    (
        "an event for a rate that follows a trace",
        "rate_mbit = 64",
        "trace = \"good.mahi\"\n\
      up = { trace = \"good.mahi\" }",
        &["event=[{ at_s = 1, action = \"rate\", link = \"dsl\", \
      share = 0.5 }]"],
    ),
    ("an unknown carrier", "duration_s = 10", "duration_s = 10\ncarriers = [\"bnod\", 3]", &[]),
    ("carriers that are no list", "duration_s = 10", "duration_s = 10\ncarriers = \"bond\"", &[]),
    ("a carrier over no link", "", "", &["carrier=alone:dls"]),
    (
        "like a file that is not there",
        "duration_s = 10",
        "duration_s = 10\nlike = \"no.toml\"",
        &[],
    ),
    ("like itself", "duration_s = 10", "duration_s = 10\nlike = \"x.toml\"", &[]),
    (
        "a course without its number",
        "rtt_ms = 13",
        "rtt_ms = 13\ncourse = { kind = \"tram\" }",
        &[],
    ),
    (
        "steps of a start without their number",
        "kind = \"udp\"",
        "kind = \"udp\"\nstart_s = {}",
        &[],
    ),
    ("a medium without links", "", "[medium.air]\n", &[]),
    ("a medium that is not there", LTE, "medium = \"ether\"\nrtt_ms = 4", &[]),
    (
        "a link in two media",
        LTE,
        "medium = [\"air\", \"ether\"]\nrtt_ms = 4\n[medium.air]\n[medium.ether]",
        &[],
    ),
    (
        "an unknown standard and an unknown width",
        LTE,
        "medium = \"air\"\nrtt_ms = 4\nwidth_mhz = 30\n[medium.air]\nstandard = \"802.11n\"",
        &[],
    ),
    (
        "a link on a medium with a rate, a bucket and a queue in time",
        LTE,
        "medium = \"air\"\nrtt_ms = 4\nrate_mbit = 5\nqueue_ms = 50\n\
         up = { shaper = false, queue_packets = 3 }\n[medium.air]",
        &[],
    ),
    ("a radio without a medium", LTE, "rate_mbit = 60\nrtt_ms = 4\nwidth_mhz = 80", &[]),
    (
        "two losses of a path",
        LTE,
        "medium = \"air\"\nrtt_ms = 4\ndistance_m = 3\npath_loss_db = 60\n[medium.air]",
        &[],
    ),
    (
        "more than frames carry",
        LTE,
        "medium = \"air\"\nrtt_ms = 4\ncapacity_mbit = 500\nframe_packets = 2\n[medium.air]",
        &[],
    ),
    (
        "a medium behind a link",
        LTE,
        "medium = \"air\"\nrtt_ms = 4\n[medium.air]\n[links.x]\nrate_mbit = 9\n\
         rtt_ms = 4\nthrough = \"lte\"",
        &[],
    ),
    (
        "couplings that are none",
        LTE,
        "medium = \"air\"\nrtt_ms = 4\n[medium.air]\n\
         coupling = [{ link = \"lte\", from = \"lte\", share = 1.2 }, { link = \"dsl\" }]",
        &[],
    ),
    (
        "one antenna and couplings",
        LTE,
        "medium = \"air\"\nrtt_ms = 4\n[medium.air]\nantennas = \"shared\"\n\
         antenna_separation_cm = 30\ncoupling = [{ link = \"lte\", from = \"dsl\", share = 1 }]",
        &[],
    ),
    (
        "an interferer at no link of the medium",
        LTE,
        "medium = \"air\"\nrtt_ms = 4\n[medium.air]\n\
         interferer = [{ name = \"i\", link = \"dsl\", kappa = 0.3 }]",
        &[],
    ),
    (
        "interferers that are said too much of, too little, and twice",
        LTE,
        "medium = \"air\"\nrtt_ms = 4\n[medium.air]\n\
         interferer = [{ name = \"i\", link = \"lte\", kappa = 0.3, power_dbm = -60 },\n\
         { name = \"i\", link = \"lte\" }]",
        &[],
    ),
    (
        "events that do not go with a medium",
        LTE,
        "medium = \"air\"\nrtt_ms = 4\n[medium.air]",
        &["event=[{ at_s = 1, action = \"rate\", link = \"lte\", share = 0.5 }, \
             { at_s = 1, action = \"power\", link = \"dsl\", power_dbm = 14 }, \
             { at_s = 1, action = \"coupling\", link = \"lte\", from = \"dsl\", share = 2 }, \
             { at_s = 1, action = \"interferer\", interferer = \"i\" }]"],
    ),
    ("a video without a rate", "", "[[app]]\nname = \"v\"\nkind = \"video\"\n", &[]),
    ("a video without a quality", "", "[[app]]\nname = \"v\"\nkind = \"video\"\nkbit = []\n", &[]),
    (
        "qualities that fall",
        "",
        "[[app]]\nname = \"v\"\nkind = \"video\"\nkbit = [500, 2000, 1000]\n",
        &[],
    ),
    (
        "a choice of one, and a rate of nothing",
        "",
        "[[app]]\nname = \"v\"\nkind = \"video\"\nkbit = 500\nabr = \"buffer\"\n\
         [[app]]\nname = \"w\"\nkind = \"video\"\nkbit = [0, 500]\nabr = \"bufer\"\n",
        &[],
    ),
    (
        "a clip of nothing, in segments longer than that",
        "",
        "[[app]]\nname = \"v\"\nkind = \"video\"\nkbit = 500\nclip_s = 0\n\
         [[app]]\nname = \"w\"\nkind = \"video\"\nkbit = 500\nclip_s = 3\n\
         [[app]]\nname = \"x\"\nkind = \"video\"\nkbit = 500\nsegment_s = 0\n",
        &[],
    ),
    (
        "a start that the buffer never reaches, and sizes of nothing",
        "",
        "[[app]]\nname = \"v\"\nkind = \"video\"\nkbit = 500\nbuffer_s_max = 5\n\
         buffer_s_start = 6\nbuffer_s_resume = 5.5\nsize_spread = 1\ndscp = 3\n",
        &[],
    ),
    (
        "a video with options of MPTCP elsewhere",
        "",
        "[[app]]\nname = \"v\"\nkind = \"video\"\nkbit = 500\nvia = \"dsl\"\n\
         scheduler = \"ecf\"\n",
        &[],
    ),
    (
        "fades that are none, and a fade of another kind",
        "rtt_ms = 13",
        "rtt_ms = 13\nup = { course = { kind = \"mobile\", number = 1, fade_s = 3 } }\n\
         down = { course = { kind = \"fades\", number = 1, clear_s = 0, left = 2 } }",
        &[],
    ),
    ("many at once", "mbit = 50", "mbit = 0", &["duration_s=-1", "links.lte.mtu=9"]),
];

const BESIDE: &[(&str, &str)] = &[
    ("good.mahi", "1\n2\n"),
    ("disorder.mahi", "1\n7\n5\n"),
    ("words.mahi", "# a trace\n1\n"),
    ("wrong.toml", "rate_mbit = 1\nrtt_ms = 5\nrtt = 5\n"),
    ("nested.toml", "rate_mbit = 1\nlike = \"wrong.toml\"\n"),
];

#[test]
fn what_is_wrong_is_told_in_exact_words() {
    let mut told = String::new();
    for (name, what, by, settings) in CASES {
        let text = if what.is_empty() {
            format!("{SOUND}{by}")
        } else {
            assert!(SOUND.contains(what), "{name}");
            SOUND.replacen(what, by, 1)
        };
        let loaded = load_beside(&text, settings, BESIDE);
        let errors = loaded.expect_err(name);
        told += &format!("# {name}\n{}", words(&errors));
    }
    let expected = include_str!("bad.txt");
    let differs = told.lines().zip(expected.lines()).find(|(told, expected)| told != expected);
    assert_eq!(told, expected, "first difference: {differs:?}\n{told}");
}

#[test]
fn an_absent_file_is_named() {
    let none: [&str; 0] = [];
    let read = |_: &Path| Err(io::Error::new(io::ErrorKind::NotFound, "no such file"));
    let errors = Experiment::load(Path::new("a/b.toml"), &none, &read).unwrap_err();
    let told = words(&errors);
    assert!(told.starts_with("a/b.toml: cannot read a/b.toml: no such file\n"), "{told}");
}

#[test]
fn every_error_has_a_place_that_exists() {
    for (name, what, by, settings) in CASES {
        let text =
            if what.is_empty() { format!("{SOUND}{by}") } else { SOUND.replacen(what, by, 1) };
        for error in load_beside(&text, settings, BESIDE).expect_err(name).iter() {
            if let Place::Line(file, line) = &error.place {
                let beside = BESIDE.iter().find(|(name, _)| Path::new(name) == &**file);
                let text = beside.map_or(text.as_str(), |(_, text)| text);
                assert!((1..=text.lines().count() + 1).contains(line), "{name}: {error}");
            }
        }
    }
}
