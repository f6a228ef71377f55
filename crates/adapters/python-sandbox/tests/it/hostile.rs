//! Snippets that try to reach or to break what is not theirs.

use labdata_domain::agent::{PythonEnd, PythonFigure, SHOWN_OUTPUT_PART};

use crate::support::{Lab, mark, processes_with};

/// Names of processes: under Landlock alone they cannot be listed, but might be guessed.
const PROCESSES: &str = "import os\ntry:\n    processes = os.listdir('/proc')\n\
                         except OSError:\n    processes = map(str, range(1, 100000))\n";

#[tokio::test]
async fn a_snippet_sees_no_environment_of_the_platform() {
    let lab = Lab::new();
    let code = format!(
        "{PROCESSES}print(sorted(os.environ))\n\
        for pid in processes:\n    if pid.isdigit():\n        \
        try: print(len(open(f'/proc/{{pid}}/environ', 'rb').read()) and open(f'/proc/{{pid}}/environ').read())\n        \
        except OSError as error: pass"
    );
    let output = lab.output(&code).await;
    for secret in ["CARGO", "LABDATA", "PIP", "UV_", "INDEX", "TOKEN", "USER"] {
        assert!(!output.contains(secret), "{secret} in {output}");
    }
}

#[tokio::test]
async fn a_snippet_sees_its_own_processes_and_files_only() {
    let lab = Lab::new();
    let own = std::env::current_exe().unwrap();
    let own = own.to_str().unwrap();
    let code = format!(
        "{PROCESSES}lines = []\nfor pid in processes:\n    if pid.isdigit():\n        \
         try: lines.append(open(f'/proc/{{pid}}/cmdline').read())\n        except OSError: pass\n\
         print(any('it-' in line for line in lines))\n\
         for path in ['{own}', '/root/.bashrc', '/etc/shadow', '../../../..', '/proc/1/environ', \
         '/proc/1/root/etc/shadow']:\n    \
         try:\n        os.listdir(path) if path.startswith('..') else open(path, 'rb').read()\n        \
         print('read', path)\n    except OSError: pass\n\
         for path in ['/etc/x', '/usr/x', inputs.__class__.__name__, '../x', os.path.dirname(os.__file__) + '/x']:\n    \
         try: open(path, 'w').write('x'); print('wrote', path)\n    except OSError: pass"
    );
    assert_eq!(lab.output(&code).await, "False\nwrote dict\n");
}

#[tokio::test]
async fn a_snippet_reaches_no_network() {
    let lab = Lab::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let code = format!(
        "import socket\nfor kind, address in [(socket.AF_INET, ('127.0.0.1', {port})), \
         (socket.AF_INET, ('169.254.169.254', 80)), (socket.AF_INET6, ('::1', {port}))]:\n    \
         try:\n        connection = socket.socket(kind)\n        connection.settimeout(5)\n        \
         connection.connect(address)\n        print('reached', address)\n    except OSError: pass\n\
         try: print(socket.getaddrinfo('example.org', 80))\n    \nexcept OSError: pass"
    );
    assert_eq!(lab.output(&code).await, "");
}

#[tokio::test]
async fn a_fork_bomb_ends_with_its_snippet() {
    let lab = Lab::new();
    let mark = mark();
    let code = format!(
        "import subprocess, sys\nwhile True:\n    subprocess.Popen([sys.executable, '-S', '-c', \
         'import time; time.sleep(600)', '{mark}'], start_new_session=True)"
    );
    let outcome = lab.run(&code).await;
    assert!(
        !matches!(outcome.end, PythonEnd::Completed | PythonEnd::TimedOut),
        "{:?}",
        outcome.end
    );
    assert_eq!(processes_with(&mark), 0);
}

#[tokio::test]
async fn endless_output_is_cut_and_does_not_stop_the_snippet() {
    let lab = Lab::new();
    let code = "import os, sys\nfor number in range(200_000): print('line', number)\n\
        for number in range(2_000): sys.stderr.write('error ' * 100 + '\\n')\n\
        os.write(1, b'past the interpreter\\n' * 1000); 'done'";
    let outcome = lab.run(code).await;
    assert_eq!(outcome.value.as_deref(), Some("'done'"));
    let displayed = outcome.stdout.display();
    assert!(displayed.starts_with("line 0\nline 1\n") && displayed.ends_with("line 199999\n"));
    assert!(
        displayed.len() < 2 * SHOWN_OUTPUT_PART + 100,
        "{}",
        displayed.len()
    );
    assert!(outcome.stdout.omitted > 2_000_000);
    assert!(outcome.stderr.len() <= 4096);
}

#[tokio::test]
async fn links_and_devices_are_no_images() {
    let lab = Lab::new();
    let code = "import os\nos.symlink('/etc/passwd', 'passwd.png')\nos.symlink('/dev/zero', 'zero.png')\n\
        os.mkfifo('pipe.png')\nos.mkdir('directory.png')\nopen('text.png', 'w').write('no image'); None";
    let outcome = lab.run(code).await;
    assert_eq!(outcome.end, PythonEnd::Completed);
    assert_eq!(outcome.figures, Vec::<PythonFigure>::new());
}

#[tokio::test]
async fn forged_reports_are_checked() {
    let lab = Lab::new();
    // Files that the interpreter has open: one of them leads to the platform.
    let forge = |frame: &str| {
        format!(
            "import os, struct\nframe = {frame}\nfor descriptor in range(3, 20):\n    \
             try: os.write(descriptor, struct.pack('>I', len(frame)) + frame)\n    except OSError: pass\n\
             import time; time.sleep(1)"
        )
    };
    for frame in [
        "b'pFigure\\n<svg onload=alert(1)>'",
        "b'o' * 100_000",
        "b'x'",
        "b'e' + b'[' * 100_000",
    ] {
        let outcome = lab.run(&forge(frame)).await;
        assert_eq!(outcome.figures, Vec::<PythonFigure>::new(), "{frame}");
        assert!(
            matches!(outcome.end, PythonEnd::Exited(_)),
            "{frame}: {:?}",
            outcome.end
        );
    }
    let endless = "import os\nwhile True:\n    for descriptor in range(3, 20):\n        \
        try: os.write(descriptor, b'\\0\\0\\0\\1o' * 1000)\n        except OSError: pass";
    let outcome = lab.run(endless).await;
    assert!(
        matches!(outcome.end, PythonEnd::Exited(_)),
        "{:?}",
        outcome.end
    );
}

#[tokio::test]
async fn a_snippet_that_ends_its_process_is_reported() {
    let lab = Lab::new();
    for (code, how) in [
        ("import os; os._exit(7)", "exit code 7"),
        ("import os; os.kill(os.getpid(), 9)", "signal 9"),
        ("import os; os.close(3); os.closerange(0, 100)", "signal"),
    ] {
        let outcome = lab.run(code).await;
        let PythonEnd::Exited(reason) = outcome.end else {
            panic!("{code}: {:?}", outcome.end);
        };
        assert!(reason.contains(how) || how == "signal", "{code}: {reason}");
    }
    let outcome = lab.run("raise SystemExit('no data')").await;
    assert_eq!(
        outcome.end,
        PythonEnd::Raised("SystemExit: no data".to_owned())
    );
    let outcome = lab.run("print(1").await;
    assert!(matches!(outcome.end, PythonEnd::Raised(text) if text.contains("SyntaxError")));
}
